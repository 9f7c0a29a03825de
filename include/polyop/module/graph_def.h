// OpDef: the arguments of an operator in C++, as the oldest sources of graph operators have them.
#ifndef POLYOP_MODULE_GRAPH_DEF_H
#define POLYOP_MODULE_GRAPH_DEF_H

#include "graph_call.h"

namespace mindspore::ops {

enum OP_DTYPE {
  DT_BEGIN,
  DT_BOOL,
  DT_INT,
  DT_FLOAT,
  DT_NUMBER,
  DT_TENSOR,
  DT_STR,
  DT_ANY,
  DT_TUPLE_BOOL,
  DT_TUPLE_INT,
  DT_TUPLE_FLOAT,
  DT_TUPLE_NUMBER,
  DT_TUPLE_TENSOR,
  DT_TUPLE_STR,
  DT_TUPLE_ANY,
  DT_LIST_BOOL,
  DT_LIST_INT,
  DT_LIST_FLOAT,
  DT_LIST_NUMBER,
  DT_LIST_TENSOR,
  DT_LIST_STR,
  DT_LIST_ANY,
  DT_END
};
enum class SignatureEnumRW { kRWRead, kRWWrite, kRWRef, kRWDefault, kRWEmptyDefaultValue };
enum class SignatureEnumKind {
  kKindPositionalKeyword,
  kKindVarPositional,
  kKindKeywordOnly,
  kKindVarKeyword
};
enum class SignatureEnumDType {
  kDType,
  kDType1,
  kDType2,
  kDType3,
  kDType4,
  kDType5,
  kDType6,
  kDType7,
  kDType8,
  kDType9,
  kDTypeEmptyDefaultValue
};

struct Signature {
  Signature(std::string name_, SignatureEnumRW rw_, SignatureEnumKind, std::nullptr_t,
            SignatureEnumDType dtype_)
      : name(std::move(name_)), rw(rw_), dtype(dtype_) {}
  std::string name;
  SignatureEnumRW rw;
  SignatureEnumDType dtype;
};
struct OpInputArg {
  std::string arg_name_;
  OP_DTYPE arg_dtype_;
  bool as_init_arg_;
  std::string arg_handler_;
  std::vector<OP_DTYPE> cast_dtype_;
  bool is_optional_;
};
struct OpOutputArg {
  std::string arg_name_;
  OP_DTYPE arg_dtype_;
  int64_t inplace_input_index_;
};
struct OpDef {
  std::string name_;
  std::vector<OpInputArg> args_;
  std::vector<OpOutputArg> returns_;
  std::vector<Signature> signatures_;
  std::map<std::string, size_t> indexes_;
  OpFuncImpl& func_impl_;
  bool enable_dispatch_;
  bool is_view_;
  bool is_graph_view_;
};

}  // namespace mindspore::ops

namespace polyop::graph {

// The type of an argument in a schema. OP_DTYPE has tuples and lists in the order of their items.
inline std::string type_text(mindspore::ops::OP_DTYPE type) {
  using namespace mindspore::ops;
  static const char* const single[] = {"bool", "int", "float", "Scalar", "Tensor", "str", "Scalar"};
  const bool list = type >= DT_LIST_BOOL, tuple = type >= DT_TUPLE_BOOL;
  if (type <= DT_BEGIN || type >= DT_END) throw std::runtime_error("an OpDef has an argument of no type");
  return std::string(single[type - (list    ? DT_LIST_BOOL
                                    : tuple ? DT_TUPLE_BOOL
                                            : DT_BOOL)]) +
         (tuple ? "[]" : "");
}

// Converts an OpDef to a Definition.
inline Definition definition_of(const mindspore::ops::OpDef& def) {
  using namespace mindspore::ops;
  Definition definition;
  definition.name = definition.function = bare(def.name_);
  std::map<SignatureEnumDType, std::vector<size_t>> groups;
  std::vector<std::string> types;
  for (size_t i = 0; i < def.args_.size(); ++i) {
    types.push_back(type_text(def.args_[i].arg_dtype_));
    if (i >= def.signatures_.size()) continue;
    const Signature& signature = def.signatures_[i];
    if (signature.rw == SignatureEnumRW::kRWWrite) definition.written.push_back(i);
    if (signature.dtype != SignatureEnumDType::kDTypeEmptyDefaultValue) groups[signature.dtype].push_back(i);
  }
  for (const auto& group : groups) definition.groups.push_back(group.second);
  std::string returns;
  for (const OpOutputArg& output : def.returns_) {
    const auto input = static_cast<int>(output.inplace_input_index_);
    definition.inplace.push_back(input);
    returns += (returns.empty() ? "" : ", ") + type_text(output.arg_dtype_);
    const auto known =
        std::find(definition.written.begin(), definition.written.end(), static_cast<size_t>(input));
    if (input >= 0 && known == definition.written.end())
      definition.written.push_back(static_cast<size_t>(input));
  }
  std::string arguments;
  for (size_t i = 0; i < types.size(); ++i) {
    const bool optional = def.args_[i].is_optional_;
    arguments += (i == 0 ? "" : ", ") + types[i] + (optional ? "? " : " ") + def.args_[i].arg_name_;
    if (optional) arguments += "=None";
  }
  definition.list = returns == "Tensor[]";
  definition.schema = "(" + arguments + ") -> " + (def.returns_.size() == 1 ? returns : "(" + returns + ")");
  return definition;
}

POLYOP_HIDDEN inline bool add_definition(const mindspore::ops::OpDef* def) {
  Registered& entry = registered()[bare(def->name_)];
  entry.infer = &def->func_impl_;
  entry.definition = std::make_shared<Definition>(definition_of(*def));
  entry.define = define;
  return true;
}

}  // namespace polyop::graph

// REGISTER_PRIMITIVE_OP_DEF(Custom_add, &definition). The operator has the name in the definition.
#define REGISTER_PRIMITIVE_OP_DEF(name, definition) \
  static const bool polyop_has_definition_##name = ::polyop::graph::add_definition(definition)

#endif
