// MindSpore's macros for failures and messages.
#ifndef POLYOP_MODULE_LOG_H
#define POLYOP_MODULE_LOG_H

#include <sstream>
#include <stdexcept>
#include <string>

namespace polyop {

// Collects a text; throws it as std::runtime_error when the statement ends.
class Thrown {
 public:
  explicit Thrown(const char* kind) {
    if (*kind != 0) text_ << kind << ": ";
  }
  template <typename T>
  Thrown& operator<<(const T& part) {
    text_ << part;
    return *this;
  }
  ~Thrown() noexcept(false) { throw std::runtime_error(text_.str()); }

 private:
  std::ostringstream text_;
};

// Takes a text and drops it: a kernel has no log.
class Dropped {
 public:
  template <typename T>
  Dropped& operator<<(const T&) {
    return *this;
  }
};

using MS_LOG_DEBUG = Dropped;
using MS_LOG_INFO = Dropped;
using MS_LOG_WARNING = Dropped;
using MS_LOG_ERROR = Dropped;
struct MS_LOG_EXCEPTION : Thrown {
  MS_LOG_EXCEPTION() : Thrown("") {}
};

}  // namespace polyop

// MS_LOG(EXCEPTION) << text; throws. The other levels (DEBUG, INFO, WARNING, ERROR) are dropped.
#define MS_LOG(level) ::polyop::MS_LOG_##level()
// MS_EXCEPTION(TypeError) << text; throws "TypeError: text".
#define MS_EXCEPTION(kind) ::polyop::Thrown(#kind)
#define MS_EXCEPTION_IF_NULL(pointer)                                                        \
  do {                                                                                       \
    if ((pointer) == nullptr) ::polyop::Thrown("") << "The pointer [" #pointer "] is null."; \
  } while (0)
#define MS_EXCEPTION_IF_CHECK_FAIL(condition, text)   \
  do {                                                \
    if (!(condition)) ::polyop::Thrown("") << (text); \
  } while (0)

#endif
