// An emulated machine with special properties.
#pragma once

#include <cuda_runtime.h>

#include <doctest/doctest.h>

#include "emulation/emulation.h"

namespace dtrain::emulation {

/// Replaces the emulated machine for the duration of a test case, and then restores the default machine. At
/// the beginning, no device of the new machine is initialized.
class OtherMachine {
 public:
  explicit OtherMachine(const Machine& machine) { CHECK(restart(machine) == ""); }
  ~OtherMachine() {
    cudaGetLastError();
    CHECK(restart({}) == "");
    cudaSetDevice(0);
  }
  OtherMachine(const OtherMachine&) = delete;
  OtherMachine& operator=(const OtherMachine&) = delete;
};

}  // namespace dtrain::emulation
