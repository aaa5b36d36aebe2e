// An emulated machine that is unlike the usual one.
#pragma once

#include <cuda_runtime.h>

#include <doctest/doctest.h>

#include "emulation/emulation.h"

namespace dtrain::emulation {

/// A machine for the time of a test case, which leaves the usual one. No device is started yet.
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
