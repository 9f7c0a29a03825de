// MindSpore's AotExtra for one of the two std::string of libstdc++: included once for each of them, with
// POLYOP_STRINGS as the name of a namespace, so that the two classes are two.
#include <memory>

#include "aot_class.h"
#include "aot_object.h"
#include "polyop/custom_aot_extra.h"

namespace polyop::POLYOP_STRINGS {

// Reads attributes as polyop's header does, with its errors.
class Attributes final : public MindSporeExtra {
 public:
  explicit Attributes(polyop_extra* contract)
      : extra_(static_cast<AotExtra*>(static_cast<void*>(contract))) {}
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  ~Attributes() override { delete data; }

  bool HasAttr(std::string name) override { return extra_->HasAttr(name); }
  bool GetAttrBool(std::string name) override { return extra_->Attr<bool>(name); }
  int64_t GetAttrInt(std::string name) override { return extra_->Attr<int64_t>(name); }
  float GetAttrFloat(std::string name) override { return extra_->Attr<float>(name); }
  std::string GetAttrStr(std::string name) override { return extra_->Attr<std::string>(name); }
  std::vector<int64_t> GetAttrIntVec(std::string name) override {
    return extra_->Attr<std::vector<int64_t>>(name);
  }
  std::vector<float> GetAttrFloatVec(std::string name) override {
    return extra_->Attr<std::vector<float>>(name);
  }
  std::vector<std::vector<int64_t>> GetAttrInt2DVec(std::string name) override {
    return extra_->Attr<std::vector<std::vector<int64_t>>>(name);
  }
  std::vector<std::vector<float>> GetAttrFloat2DVec(std::string name) override {
    return extra_->Attr<std::vector<std::vector<float>>>(name);
  }

 private:
  AotExtra* extra_;
};

class Object final : public AotObject {
 public:
  explicit Object(polyop_extra* contract) : attributes_(contract) {}
  void* pointer() override { return static_cast<MindSporeExtra*>(&attributes_); }
  const std::vector<size_t>& workspaces() const override { return attributes_.workspaces; }
  bool has_data() const override { return attributes_.data != nullptr; }

 private:
  Attributes attributes_;
};

}  // namespace polyop::POLYOP_STRINGS
