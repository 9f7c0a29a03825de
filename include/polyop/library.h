// Registers operators by their schemas, in any number of files:
//
//   POLYOP_LIBRARY(myops, m) { m.def("my_op(Tensor self) -> Tensor"); }
//   POLYOP_LIBRARY_IMPL(myops, CPU, m) { m.impl("my_op", &my_op); }
//
// Compiling needs no framework and no Python.
#ifndef POLYOP_LIBRARY_H
#define POLYOP_LIBRARY_H

#include "library/dispatch.h"
#include "module/runner.h"

// Each block also puts a note into a section of the library, so that polyop can list the blocks without
// running its code.
#define POLYOP_LIBRARY_JOIN_(a, b) a##b
#define POLYOP_LIBRARY_BLOCK_(space, kind, key, m, n)                                            \
  static void POLYOP_LIBRARY_JOIN_(polyop_fill_, n)(::polyop::Library&);                         \
  __attribute__((section("polyop_blocks"), used)) static const char POLYOP_LIBRARY_JOIN_(        \
      polyop_note_, n)[] = kind " " space " " key;                                               \
  [[maybe_unused]] static const ::polyop::library::Block POLYOP_LIBRARY_JOIN_(polyop_block_, n)( \
      space, kind, key, __FILE__, __LINE__, &POLYOP_LIBRARY_JOIN_(polyop_fill_, n));             \
  static void POLYOP_LIBRARY_JOIN_(polyop_fill_, n)([[maybe_unused]] ::polyop::Library & m)
#define POLYOP_LIBRARY_BLOCK(space, kind, key, m, n) POLYOP_LIBRARY_BLOCK_(space, kind, key, m, n)

// Defines the schemas of a namespace. A process has one such block for each namespace; FRAGMENT adds to it.
#define POLYOP_LIBRARY(space, m) POLYOP_LIBRARY_BLOCK(#space, "library", "", m, __COUNTER__)
#define POLYOP_LIBRARY_FRAGMENT(space, m) POLYOP_LIBRARY_BLOCK(#space, "fragment", "", m, __COUNTER__)
// Registers functions for the key CPU, CUDA, PrivateUse1, Meta, AutogradCPU, AutogradCUDA or
// AutogradPrivateUse1.
#define POLYOP_LIBRARY_IMPL(space, key, m) \
  POLYOP_LIBRARY_BLOCK(#space, "implementations", #key, m, __COUNTER__)

extern "C" __attribute__((weak, used, visibility("default"))) const polyop_module_table* polyop_library(
    const polyop_module_functions* functions) {
  static const char* problem = nullptr;
  static const polyop_module_table* table = nullptr;
  ::polyop::functions() = functions;
  if (table != nullptr) return table;
  ::polyop::library::Registry& registry = ::polyop::library::Registry::get();
  try {
    ::polyop::check_functions(functions);
    for (auto* block = ::polyop::library::Block::first(); block != nullptr; block = block->next) {
      const std::string location = std::string(block->file) + ":" + std::to_string(block->line);
      registry.add({block->space, "", block->kind + ("\n" + location), nullptr, nullptr, ""});
      ::polyop::Library library(*block);
      block->fill(library);
    }
  } catch (const std::exception& error) {
    problem = (new std::string(error.what()))->c_str();
  } catch (...) {
    problem = "the library threw an exception that is no std::exception";
  }
  return table = registry.finish(::polyop::library::dispatch, problem);
}

// Makes the operators of another library known to this library's Dispatcher. Returns this library's table.
extern "C" __attribute__((weak, used, visibility("default"))) const polyop_module_table* polyop_library_link(
    const polyop_module_table* other) {
  if (other != nullptr) {
    auto& first = ::polyop::library::Linked::first();
    first = new ::polyop::library::Linked{other, first};
  }
  return ::polyop::library::Registry::get().table();
}

#endif
