// Companions and kernels that go wrong, one way each.
#include "count.h"
#include "custom_aot_extra.h"

#define KERNEL(name) extern "C" int name(int, void **, int *, int64_t **, const char **, void *, void *)
#define INIT(name) extern "C" int name##Init(int *, int64_t **, const char **, AotExtra *extra)
#define SHAPE(name) extern "C" std::vector<int64_t> name##InferShape(int *, int64_t **, AotExtra *extra)

enum TypeId : int {};

KERNEL(Throws) { throw std::runtime_error("the matrix is singular"); }
KERNEL(ThrowsAnInt) { throw 3; }

KERNEL(InitThrows) { return 0; }
INIT(InitThrows) { return extra->Attr<float>("no_such_attribute") > 0; }

KERNEL(InitFails) { return 0; }
INIT(InitFails) { return extra->Fail("three dimensions are too many"); }

KERNEL(WrongAttribute) { return 0; }
INIT(WrongAttribute) { return static_cast<int>(extra->Attr<std::string>("scale").size()); }

KERNEL(ShapeThrows) { return 0; }
SHAPE(ShapeThrows) { throw std::invalid_argument("only vectors"); }

KERNEL(ShapeNegative) { return 0; }
SHAPE(ShapeNegative) { return {2, -1}; }

KERNEL(ShapeOfTwo) { return 0; }
extern "C" std::vector<std::vector<int64_t>> ShapeOfTwoInferShape(int *, int64_t **, AotExtra *) { return {{2}, {3}}; }

KERNEL(TypeUnknown) { return 0; }
extern "C" TypeId TypeUnknownInferType(std::vector<TypeId>, AotExtra *) { return static_cast<TypeId>(5); }
