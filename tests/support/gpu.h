// Test cases that need a GPU are in TEST_SUITE("gpu"). Without a GPU they are skipped with a message; with
// DTRAIN_REQUIRE_CUDA=1 in the environment (set by ./dev gpu-test), a missing GPU is a failure.
#pragma once

#include <doctest/doctest.h>

namespace dtrain::test {

/// Skips the GPU cases if there is no GPU. Returns false if the program must fail because of the missing GPU.
/// Called by tests/main.cpp in programs that link lib/device.
bool settle_gpu_cases(doctest::Context& context);

}  // namespace dtrain::test
