#include "planned.h"

#include <new>

#include "execute.h"
#include "python_lock.h"

namespace polyop {

namespace {

PyObject *to_save_name, *planned_name, *materialize_name, *saved_name, *needs_name;
PyObject *forward_slowly_name, *backward_slowly_name, *numbers_name;

// The fields of a plan, of its state and of a step: the named tuples of hosts/torch/planned.py.
enum PlanField : Py_ssize_t { kFunction, kInputs, kOutputs, kAttributes, kState, kPlanFields };
enum StateField : Py_ssize_t { kSteps };
enum StepField : Py_ssize_t { kPart, kOperands, kSources, kResults };
// Where an operand of a step comes from: a tensor, or the constant at its place, or the attribute kNumber - n
// of the call.
enum SourceCode : Py_ssize_t { kConstant = -1, kNumber = -2 };
// Where a gradient of a step comes from: a result of the part, nothing, or the gradient kFirst - n.
enum ResultCode : Py_ssize_t { kNothing = -1, kFirst = -2 };

CallObject* as_call(PyObject* self) { return reinterpret_cast<CallObject*>(self); }

Py_ssize_t number(PyObject* tuple, Py_ssize_t i) { return PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, i)); }

PyObject* call_method(PyObject* name, PyObject* const* args, Py_ssize_t count) {
  PyObject* method = PyObject_GetAttr(args[0], name);
  if (method == nullptr) return nullptr;
  PyObject* result =
      taking_lock([&] { return PyObject_Vectorcall(method, args, static_cast<size_t>(count), nullptr); });
  Py_DECREF(method);
  return result;
}

// Sets what backward needs of the attributes of a call, if the plan serves several values. False with a
// Python error.
bool keep_numbers(PyObject* ctx, PyObject* plan, const Call& call) {
  if (call.numbers.size() == 0) return true;
  PyObject* positions = PyTuple_GET_ITEM(plan, kAttributes);
  PyObject* values = PyTuple_New(PyTuple_GET_SIZE(positions));
  if (values == nullptr) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(positions); ++i) {
    PyTuple_SET_ITEM(values, i, Py_NewRef(call.values[static_cast<size_t>(number(positions, i))]));
  }
  const bool set = PyObject_SetAttr(ctx, numbers_name, values) == 0;
  Py_DECREF(values);
  return set;
}

// Sets what autograd keeps of a call. False with a Python error.
bool keep(PyObject* ctx, PyObject* plan, PyObject* const* inputs, PyObject* output) {
  PyObject *from_inputs = PyTuple_GET_ITEM(plan, kInputs), *from_outputs = PyTuple_GET_ITEM(plan, kOutputs);
  const Py_ssize_t before = PyTuple_GET_SIZE(from_inputs), after = PyTuple_GET_SIZE(from_outputs);
  PyObject* kept = PyTuple_New(before + after);
  if (kept == nullptr) return false;
  for (Py_ssize_t i = 0; i < before + after; ++i) {
    PyObject* value = nullptr;
    if (i < before) {
      value = inputs[number(from_inputs, i)];
    } else {
      value =
          PyTuple_CheckExact(output) ? PyTuple_GET_ITEM(output, number(from_outputs, i - before)) : output;
    }
    Py_INCREF(value);
    PyTuple_SET_ITEM(kept, i, value);
  }
  const bool set = PyObject_SetAttr(ctx, to_save_name, kept) == 0 &&
                   PyObject_SetAttr(ctx, planned_name, PyTuple_GET_ITEM(plan, kState)) == 0 &&
                   PyObject_SetAttr(ctx, materialize_name, Py_False) == 0;
  Py_DECREF(kept);
  return set;
}

// The output of a call that has a plan. Null without an error: Python must make the call.
PyObject* forward(CallObject* self, PyObject* const* args, Py_ssize_t count) {
  Call call;
  if (gather(self, args + 1, count - 1, &call) != GatherResult::kReady) return nullptr;
  PyObject* plan = self->plans->find(call.key).owner;
  if (plan == nullptr || PyTuple_GET_SIZE(plan) != kPlanFields) return nullptr;
  Py_INCREF(plan);  // another thread may replace it while the kernel runs
  bool declined = false;
  PyObject* output = execute_prepared(self, &call, {static_cast<Pack>(self->pack)}, &declined);
  if (output != nullptr && !(keep(args[0], plan, args + 1, output) && keep_numbers(args[0], plan, call))) {
    Py_CLEAR(output);
  }
  Py_DECREF(plan);
  return output;
}

// The gradients of a step, one for each argument of the call.
PyObject* spread(PyObject* step, PyObject* computed, PyObject* const* gradients) {
  PyObject* codes = PyTuple_GET_ITEM(step, kResults);
  const Py_ssize_t count = PyTuple_GET_SIZE(codes);
  PyObject* result = PyTuple_New(count);
  if (result == nullptr) return nullptr;
  for (Py_ssize_t i = 0; i < count; ++i) {
    const Py_ssize_t code = number(codes, i);
    PyObject* value = code == kNothing ? Py_None
                      : code < 0       ? gradients[kFirst - code]
                                       : PyTuple_GET_ITEM(computed, code);
    Py_INCREF(value);
    PyTuple_SET_ITEM(result, i, value);
  }
  return result;
}

// Calls the part of a step, and returns the gradients of the call's arguments.
PyObject* take(PyObject* step, PyObject* ctx, PyObject* saved, PyObject* const* gradients) {
  if (PyTuple_GET_ITEM(step, kPart) == Py_None) return spread(step, nullptr, gradients);
  PyObject *operands = PyTuple_GET_ITEM(step, kOperands), *sources = PyTuple_GET_ITEM(step, kSources);
  const Py_ssize_t kept = PyTuple_GET_SIZE(saved);
  Small<PyObject*, 16> values;
  PyObject* numbers = nullptr;  // None: those of the call that made the step
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(operands); ++i) {
    const Py_ssize_t source = number(sources, i);
    if (source <= kNumber && numbers == nullptr) {
      numbers = PyObject_GetAttr(ctx, numbers_name);
      if (numbers == nullptr) return nullptr;
    }
    values.push(source <= kNumber && numbers != Py_None ? PyTuple_GET_ITEM(numbers, kNumber - source)
                : source < 0                            ? PyTuple_GET_ITEM(operands, i)
                : source < kept                         ? PyTuple_GET_ITEM(saved, source)
                                                        : gradients[source - kept]);
  }
  PyObject* computed = taking_lock([&] {
    return PyObject_Vectorcall(PyTuple_GET_ITEM(step, kPart), values.data(), values.size(), nullptr);
  });
  Py_XDECREF(numbers);
  if (computed == nullptr) return nullptr;
  PyObject* result = nullptr;
  if (PyTuple_CheckExact(computed)) {
    result = spread(step, computed, gradients);
  } else {
    PyErr_SetString(PyExc_TypeError, "the part of a gradient must return a tuple");
  }
  Py_DECREF(computed);
  return result;
}

// The key of a step: ctx.needs_input_grad; with the set of absent gradients, as bits, if there are any.
PyObject* step_key(PyObject* const* args, Py_ssize_t count) {
  unsigned long long absent = 0;
  for (Py_ssize_t i = 1; i < count; ++i) {
    if (args[i] == Py_None) absent |= 1ULL << ((i - 1));
  }
  PyObject* needs = PyObject_GetAttr(args[0], needs_name);
  return needs == nullptr || absent == 0 ? needs : Py_BuildValue("(NK)", needs, absent);
}

// The step for these gradients: a new reference, or null, maybe with a Python error.
PyObject* find_step(PyObject* const* args, Py_ssize_t count) {
  PyObject* state = PyObject_GetAttr(args[0], planned_name);
  PyObject* key = state == nullptr || count > 64 ? nullptr : step_key(args, count);
  PyObject* step = nullptr;
  if (key != nullptr && state != Py_None) {
    step = PyDict_GetItemWithError(PyTuple_GET_ITEM(state, kSteps), key);
    Py_XINCREF(step);
  }
  Py_XDECREF(key);
  Py_XDECREF(state);
  return step;
}

}  // namespace

PyObject* planned_function(CallObject* self, const Call& call) {
  PyObject* plan = self->plans->find(call.key).owner;
  if (plan == nullptr) return nullptr;
  PyObject* function = PyTuple_GET_ITEM(plan, kFunction);
  Py_INCREF(function);
  return function;
}

PyObject* plan_gradient_method(PyObject* object, PyObject* const* args, Py_ssize_t count) {
  CallObject* self = as_call(object);
  if (count < 2 || !PyTuple_Check(args[0]) || PyTuple_GET_SIZE(args[0]) == 0) {
    PyErr_SetString(PyExc_TypeError, "needs a plan, which is a tuple, and a function");
    return nullptr;
  }
  try {
    Call call;
    if (gather(self, args + 2, count - 2, &call) == GatherResult::kReady && self->differentiate == args[1] &&
        self->plans->find(call.key).owner == nullptr) {
      self->plans->add(call.key, nullptr, args[0]);
    }
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
  Py_RETURN_NONE;
}

PyObject* planned_forward_method(PyObject* object, PyObject* const* args, Py_ssize_t count) {
  if (count < 1) {
    PyErr_SetString(PyExc_TypeError, "needs the context of an autograd.Function");
    return nullptr;
  }
  PyObject* output = nullptr;
  try {
    output = forward(as_call(object), args, count);
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
  return output != nullptr || PyErr_Occurred() ? output : call_method(forward_slowly_name, args, count);
}

PyObject* planned_backward(PyObject*, PyObject* const* args, Py_ssize_t count) {
  PyObject* step = find_step(args, count);
  if (step == nullptr) return PyErr_Occurred() ? nullptr : call_method(backward_slowly_name, args, count);
  PyObject* saved = PyObject_GetAttr(args[0], saved_name);  // fails when freed, or changed in place
  PyObject* result = saved == nullptr ? nullptr : take(step, args[0], saved, args + 1);
  Py_XDECREF(saved);
  Py_DECREF(step);
  return result;
}

void start_planned() {
  to_save_name = PyUnicode_InternFromString("to_save");
  planned_name = PyUnicode_InternFromString("planned");
  materialize_name = PyUnicode_InternFromString("materialize_grads");
  saved_name = PyUnicode_InternFromString("saved_tensors");
  numbers_name = PyUnicode_InternFromString("numbers");
  needs_name = PyUnicode_InternFromString("needs_input_grad");
  forward_slowly_name = PyUnicode_InternFromString("forward_slowly");
  backward_slowly_name = PyUnicode_InternFromString("backward_slowly");
}

}  // namespace polyop
