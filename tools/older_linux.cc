// What the C++ library of GCC 12 has and that of older systems lacks, for the core in a wheel. older_linux.py compiles
// it; a build for this machine alone does not need it.

#include <new>

#define HIDDEN __attribute__((visibility("hidden")))

extern "C" {

// In glibc since 2.32: whether the process has one thread, so that reference counters need no atomic operations.
// False is always right.
HIDDEN char __libc_single_threaded = 0;

// Before GCC 11 std::exception_ptr was copied and destroyed by functions of the library, which it still has. Later
// headers do both inline, by two functions of their own. The version in the name is what makes the linker take the
// library's function and not the inline one.
void library_copy(void** to, void* const* from);
void library_destroy(void** pointer);
__asm__(".symver library_copy, _ZNSt15__exception_ptr13exception_ptrC1ERKS0_@CXXABI_1.3.3");
__asm__(".symver library_destroy, _ZNSt15__exception_ptr13exception_ptrD1Ev@CXXABI_1.3.3");

HIDDEN void add_reference(void** pointer) __asm__("_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv");
void add_reference(void** pointer) {
  void* copy;  // never destroyed: its reference is the one that is added
  library_copy(&copy, pointer);
}

HIDDEN void release(void** pointer) __asm__("_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv");
void release(void** pointer) { library_destroy(pointer); }

// Since GCC 11: a new expression whose size overflows.
[[noreturn]] HIDDEN void throw_bad_array_new_length() __asm__("_ZSt28__throw_bad_array_new_lengthv");
void throw_bad_array_new_length() { throw std::bad_array_new_length(); }

}  // extern "C"
