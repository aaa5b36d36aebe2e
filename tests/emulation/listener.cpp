// After each test case, reports failures of the devices. After all test cases, reports leaks.
#include <cstdio>
#include <cstdlib>

#include <doctest/doctest.h>

#include "emulation/emulation.h"

namespace dtrain::emulation {
namespace {

struct Listener final : doctest::IReporter {
  explicit Listener(const doctest::ContextOptions&) {}

  void test_case_end(const doctest::CurrentTestCaseStats&) override {
    if (!crashed_) report(take_failure());
  }
  void test_run_end(const doctest::TestRunStats&) override {
    if (crashed_) return;
    report(restart({}));
    // doctest has already computed its exit code.
    if (troubles_ > 0) std::_Exit(1);
  }

  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_case_start(const doctest::TestCaseData&) override { unload_kernels(); }
  void test_case_reenter(const doctest::TestCaseData&) override {}
  /// Records whether a test case has crashed. In this case, the signal may have interrupted a kernel, and the
  /// lock of the device is never released.
  void test_case_exception(const doctest::TestCaseException& what) override { crashed_ |= what.is_crash; }
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}

 private:
  void report(const std::string& trouble) {
    if (trouble.empty()) return;
    ++troubles_;
    std::printf("[emulation] FAILED: %s\n", trouble.c_str());
    std::fflush(stdout);
  }

  int troubles_ = 0;
  bool crashed_ = false;
};

REGISTER_LISTENER("emulation", 1, Listener);

}  // namespace
}  // namespace dtrain::emulation
