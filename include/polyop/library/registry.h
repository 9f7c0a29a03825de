// The registrations of a library, and its table. A library exports one table as "polyop_library". It has the
// form of a module's table, with these rows:
//
//   kind            name           schema               doc (one line each)                      call
//   library         the namespace                       library, location
//   schema          ns::name       as in m.def()        schema, location                         dispatch()
//   implementation  ns::name       (Tensor) -> Tensor   implementation, location, key, C++ type  the function
//
// All symbols are hidden, so that each library has its own registry.
#ifndef POLYOP_LIBRARY_REGISTRY_H
#define POLYOP_LIBRARY_REGISTRY_H

#include <deque>

#include "kernel.h"

namespace polyop {
class __attribute__((visibility("hidden"))) Library;
}

namespace polyop {
namespace library __attribute__((visibility("hidden"))) {

  // One POLYOP_LIBRARY or POLYOP_LIBRARY_IMPL. The static initialisers of a file create its blocks in order.
  // They are filled when polyop calls polyop_library().
  struct Block {
    Block(const char* space_, const char* kind_, const char* key_, const char* file_, int line_,
          void (*fill_)(Library&))
        : space(space_), kind(kind_), key(key_), file(file_), line(line_), fill(fill_) {
      *last() = this;
      last() = &next;
    }
    static Block*& first() {
      static Block* block = nullptr;
      return block;
    }
    static Block**& last() {
      static Block** end = &first();
      return end;
    }

    const char *space, *kind, *key, *file;
    int line;
    void (*fill)(Library&);
    Block* next = nullptr;
  };

  enum Key {
    kKeyCPU,
    kKeyCUDA,
    kKeyPrivateUse1,
    kKeyMeta,
    kKeyAutogradCPU,
    kKeyAutogradCUDA,
    kKeyAutogradPrivateUse1,
    kKeyAutograd,
    kKeyComposite,
    kKeys
  };
  inline const char* const kKeyNames[kKeys] = {"CPU",
                                               "CUDA",
                                               "PrivateUse1",
                                               "Meta",
                                               "AutogradCPU",
                                               "AutogradCUDA",
                                               "AutogradPrivateUse1",
                                               "Autograd",
                                               "CompositeImplicitAutograd"};

  struct Operator {
    std::string name;
    uint64_t written = 0;  // a bit for each argument that the schema declares as written
    const polyop_function* kernels[kKeys] = {};
  };

  struct Row {
    std::string name, schema, doc;
    const void* target;
    decltype(polyop_function::call) call;
    std::string key;
  };

  // The arguments that a schema declares as written: "f(Tensor(a!) self, Tensor other)" gives 1.
  POLYOP_COLD inline uint64_t written_arguments(const std::string& schema) {
    uint64_t written = 0;
    size_t argument = 0;
    int depth = 0;
    char quote = 0;
    bool star = false;
    for (size_t i = 0; i < schema.size(); ++i) {
      const char c = schema[i];
      if (quote != 0) {
        if (c == '\\') ++i;
        if (c == quote) quote = 0;
        continue;
      }
      if (c == '"' || c == '\'') quote = c;
      if (c == '(' || c == '[') ++depth;
      if (c == ')' || c == ']') {
        if (--depth == 0) break;
      }
      if (c == '!' && argument < 64) written |= uint64_t{1} << argument;
      if (c == '*' && depth == 1) star = true;
      if (c == ',' && depth == 1) {
        if (!star) ++argument;
        star = false;
      }
    }
    return written;
  }

  // Everything that the library's blocks have registered.
  class Registry {
   public:
    static Registry& get() {
      static auto& registry = *new Registry();  // never destroyed
      return registry;
    }
    void add(Row row) { rows_.push_back(std::move(row)); }
    const polyop_module_table* table() const { return &table_; }
    POLYOP_COLD const polyop_module_table* finish(decltype(polyop_function::call) dispatch,
                                                  const char* problem) {
      auto* functions = new polyop_function[rows_.size() + 1]();
      for (size_t i = 0; i < rows_.size(); ++i) {
        Row& row = rows_[i];
        if (row.doc.rfind("schema\n", 0) == 0) {
          operators_.emplace_back();
          operators_.back().name = row.name;
          operators_.back().written = written_arguments(row.schema);
          row.target = &operators_.back();
          row.call = dispatch;
        }
        functions[i] = {row.name.c_str(), row.schema.c_str(), row.doc.c_str(),
                        row.target,       row.call,           free_value};
      }
      for (size_t i = 0; i < rows_.size(); ++i) {
        for (Operator& op : operators_) {
          for (int key = 0; key < kKeys; ++key) {
            if (op.name == rows_[i].name && rows_[i].key == kKeyNames[key]) op.kernels[key] = &functions[i];
          }
        }
      }
      table_ = {POLYOP_MODULE_VERSION, 0, "library", rows_.size(), functions, problem};
      return &table_;
    }

   private:
    std::deque<Row> rows_;
    std::deque<Operator> operators_;
    polyop_module_table table_{};
  };

}  // namespace library
}  // namespace polyop

namespace polyop {

// Marks a kernel that takes tensors of any layout: m.impl("f", &f, polyop::strided).
struct Strided {};
constexpr Strided strided{};

// The `m` of a block.
class __attribute__((visibility("hidden"))) Library {
 public:
  explicit Library(const library::Block& block) : block_(block) {}

  // Defines an operator by its schema, "name(Tensor x, float alpha=1.0) -> Tensor".
  POLYOP_COLD Library& def(const std::string& schema, int line = __builtin_LINE()) {
    library::Registry::get().add(
        {qualified(name_of(schema)), schema, "schema\n" + location(line), nullptr, nullptr, ""});
    return *this;
  }
  // The same, with a function for every device that calls other operators.
  template <typename F, typename = std::enable_if_t<!std::is_arithmetic_v<F>>>
  Library& def(const std::string& schema, F function, int line = __builtin_LINE()) {
    def(schema, line);
    return add(name_of(schema), library::kKeyNames[library::kKeyComposite], std::move(function), true, line);
  }
  // Registers an operator's function for the key of the block. The function receives dense tensors.
  template <typename F>
  Library& impl(const std::string& name, F function, int line = __builtin_LINE()) {
    return add(name, block_.key, std::move(function), false, line);
  }
  template <typename F>
  Library& impl(const std::string& name, F function, Strided, int line = __builtin_LINE()) {
    return add(name, block_.key, std::move(function), true, line);
  }

 private:
  POLYOP_COLD static std::string name_of(const std::string& schema) {
    size_t end = std::min(schema.find('('), schema.size());
    while (end > 0 && schema[end - 1] == ' ') --end;
    return schema.substr(0, end);
  }
  POLYOP_COLD std::string qualified(const std::string& name) const {
    return name.find("::") == std::string::npos ? std::string(block_.space) + "::" + name : name;
  }
  POLYOP_COLD std::string location(int line) const {
    return std::string(block_.file) + ":" + std::to_string(line);
  }
  template <typename F>
  Library& add(const std::string& name, const char* key, F function, bool takes_strides, int line) {
    using BoundKernel = library::Kernel<std::decay_t<F>>;
    put({qualified(name), BoundKernel::signature(), BoundKernel::spelled(),
         new BoundKernel{{takes_strides}, std::move(function)}, BoundKernel::call, key},
        line);
    return *this;
  }
  // `row` has the compiler's text of the type as its doc.
  POLYOP_COLD void put(library::Row row, int line) {
    row.doc = "implementation\n" + location(line) + "\n" + row.key + "\n" + row.doc;
    library::Registry::get().add(std::move(row));
  }

  const library::Block& block_;
};

}  // namespace polyop

#endif
