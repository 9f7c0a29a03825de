// MindSpore's macros for failures and messages.
#ifndef POLYOP_MODULE_LOG_H
#define POLYOP_MODULE_LOG_H

#include <cstdio>
#include <iosfwd>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace polyop {

// Collects a text. Throws it as std::runtime_error at the end of the statement.
class ErrorText {
 public:
  explicit ErrorText(const char* kind) : text_(kind) {
    if (!text_.empty()) text_ += ": ";
  }
  // Takes text and numbers. Other types with an operator<< need <sstream>, which is slow to compile.
  template <typename T, typename Stream = std::ostringstream>
  ErrorText& operator<<(const T& part) {
    if constexpr (std::is_convertible_v<T, std::string>) {
      text_ += static_cast<std::string>(part);
    } else if constexpr (std::is_same_v<T, char>) {
      text_ += part;
    } else if constexpr (std::is_enum_v<T>) {
      text_ += std::to_string(static_cast<long long>(part));
    } else if constexpr (std::is_integral_v<T>) {
      text_ += std::to_string(part);
    } else if constexpr (std::is_arithmetic_v<T>) {
      char digits[32];
      std::snprintf(digits, sizeof digits, "%g", static_cast<double>(part));
      text_ += digits;
    } else {
      Stream stream;
      stream << part;
      text_ += stream.str();
    }
    return *this;
  }
  ~ErrorText() noexcept(false) { throw std::runtime_error(text_); }

 private:
  std::string text_;
};

// Ignores the text, because kernels have no log.
class NoText {
 public:
  template <typename T>
  NoText& operator<<(const T&) {
    return *this;
  }
};

using MS_LOG_DEBUG = NoText;
using MS_LOG_INFO = NoText;
using MS_LOG_WARNING = NoText;
using MS_LOG_ERROR = NoText;
struct MS_LOG_EXCEPTION : ErrorText {
  MS_LOG_EXCEPTION() : ErrorText("") {}
};

}  // namespace polyop

// MS_LOG(EXCEPTION) << text; throws. The other levels (DEBUG, INFO, WARNING, ERROR) do nothing.
#define MS_LOG(level) ::polyop::MS_LOG_##level()
// MS_EXCEPTION(TypeError) << text; throws "TypeError: text".
#define MS_EXCEPTION(kind) ::polyop::ErrorText(#kind)
#define MS_EXCEPTION_IF_NULL(pointer)                                                           \
  do {                                                                                          \
    if ((pointer) == nullptr) ::polyop::ErrorText("") << "The pointer [" #pointer "] is null."; \
  } while (0)
#define MS_EXCEPTION_IF_CHECK_FAIL(condition, text)      \
  do {                                                   \
    if (!(condition)) ::polyop::ErrorText("") << (text); \
  } while (0)

#endif
