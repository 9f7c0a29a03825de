#include "extra.h"

#include <cstring>
#include <utility>

namespace polyop {

namespace {
thread_local std::string error_text;  // per thread: one extra serves several threads at once
}

void Attribute::add(bool value) {
  kind = POLYOP_BOOL;
  ints.push_back(value ? 1 : 0);
}

void Attribute::add(int64_t value) {
  if (kind == POLYOP_FLOAT) {  // [1.5, 2]: a list of floats that spells one as an int
    floats.push_back(static_cast<double>(value));
    return;
  }
  kind = POLYOP_INT;
  ints.push_back(value);
}

void Attribute::add(double value) {
  if (kind == POLYOP_INT) {
    floats.assign(ints.begin(), ints.end());
    ints.clear();
  }
  kind = POLYOP_FLOAT;
  floats.push_back(value);
}

void Attribute::add(const std::string& value) {
  kind = POLYOP_STRING;
  texts.push_back(value);
}

void Attribute::seal() {
  strings.clear();
  for (const std::string& text : texts) strings.push_back(text.c_str());
}

struct ExtraFunctions {
  static const Extra::State& state(const polyop_extra* self) {
    return *static_cast<const Extra::State*>(self->state);
  }
  static Extra* of(const polyop_extra* self) { return state(self).extra; }

  static bool number(const polyop_extra* self, const char* name, polyop_attribute* value) {
    for (size_t i = 0; i < state(self).count; ++i) {
      const Number& number = state(self).numbers[i];
      if (std::strcmp(number.name, name) != 0) continue;
      *value = {number.kind, 0, 1, &number.integer, &number.real, nullptr, 0, nullptr};
      return true;
    }
    return false;
  }

  static int attribute(const polyop_extra* self, const char* name, polyop_attribute* value) {
    if (number(self, name, value)) return 0;
    const Extra* extra = of(self);
    const auto found = extra->attributes_.find(name);
    if (found == extra->attributes_.end()) return 1;
    const Attribute& source = found->second;
    value->kind = source.kind;
    value->depth = source.depth;
    value->count = source.ints.size() + source.floats.size() + source.texts.size();
    value->ints = source.ints.data();
    value->floats = source.floats.data();
    value->strings = source.strings.data();
    value->rows = source.row_lengths.size();
    value->row_lengths = source.row_lengths.data();
    return 0;
  }

  static void set_workspaces(polyop_extra* self, const size_t* bytes, size_t count) {
    of(self)->workspaces_.assign(bytes, bytes + count);
  }

  static size_t workspaces(const polyop_extra* self, const size_t** bytes) {
    *bytes = of(self)->workspaces_.data();
    return of(self)->workspaces_.size();
  }

  static void set_kernel_data(polyop_extra* self, void* data, void (*destroy)(void*)) {
    Extra* extra = of(self);
    if (extra->data_ != nullptr && extra->data_ != data && extra->destroy_ != nullptr) {
      extra->destroy_(extra->data_);
    }
    extra->data_ = data;
    extra->destroy_ = destroy;
  }

  static void* kernel_data(const polyop_extra* self) { return of(self)->data_; }

  static void set_error(polyop_extra*, const char* text) { error_text = text == nullptr ? "" : text; }
};

namespace {
constexpr polyop_extra_functions kFunctions = {
    ExtraFunctions::attribute,       ExtraFunctions::set_workspaces, ExtraFunctions::workspaces,
    ExtraFunctions::set_kernel_data, ExtraFunctions::kernel_data,    ExtraFunctions::set_error,
};
}

Extra::Extra(std::map<std::string, Attribute> attributes, Strings strings)
    : contract_{POLYOP_ABI_VERSION, sizeof(polyop_extra), &kFunctions, &state_},
      attributes_(std::move(attributes)) {
  for (auto& entry : attributes_) entry.second.seal();
  if (strings == Strings::kOld) object_ = aot_object_with_old_strings(&contract_);
  if (strings == Strings::kNew) object_ = aot_object_with_new_strings(&contract_);
}

Extra::~Extra() { ExtraFunctions::set_kernel_data(&contract_, nullptr, nullptr); }

void clear_error() { error_text.clear(); }

std::string take_error() { return std::exchange(error_text, std::string()); }

}  // namespace polyop
