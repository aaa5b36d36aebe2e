// Test cases that need a GPU stand in TEST_SUITE("gpu"). Where there is none they are left out, and the
// reason is printed; with DTRAIN_REQUIRE_CUDA=1 in the environment that is a failure instead (./dev gpu-test
// sets it).
#pragma once

#include <doctest/doctest.h>

namespace dtrain::test {

/// False where the program must fail for want of a GPU. Called by tests/main.cpp in the programs that are
/// linked with lib/device.
bool settle_gpu_cases(doctest::Context& context);

}  // namespace dtrain::test
