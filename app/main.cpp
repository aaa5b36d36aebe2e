// The entry point: runs the subcommand and maps its exceptions to messages and exit codes.
#include <filesystem>
#include <new>
#include <stdexcept>

#include <fmt/format.h>

#include "base/error.h"
#include "cli/console.h"
#include "cli/invocation.h"
#include "cli/last_resort.h"
#include "cli/signals.h"
#include "commands.h"
#include "device/gpu_info.h"
#include "train/trainer.h"
#include "version.h"

namespace dtrain {

namespace {

// Exit codes. A run ended by a signal returns 128 + the signal's number.
constexpr int kDone = 0, kFailed = 1, kWrong = 2;

void run(int argc, char** argv) {
  CommandLine line("dtrain", "Trains neural networks described by YAML files.");
  line.set_version(version_text,
                   "Show the version of this program and of the libraries that it was built with");
  World& world = single_process();
  add_fit(line, world);
  add_resume(line, world);
  add_evaluate(line, world);
  add_predict(line, world);
  add_generate(line, world);
  add_export(line);
  add_check(line, world);
  for (const auto add : {add_summary, add_inspect, add_import, add_diff, add_new, add_sweep, add_report,
                         add_runs, add_gpus, add_schema, add_completion, add_help})
    add(line);
  line.run(argc, argv);
}

}  // namespace

}  // namespace dtrain

int main(int argc, char** argv) {
  using namespace dtrain;
  set_gpu_environment();
  install_last_resort();
  ignore_write_signals();
  take_signals();  // before any other thread exists
  remember_command(argc, argv);
  try {
    run(argc, argv);
    return kDone;
  } catch (const Interrupted& interruption) {
    print_note(interruption.what());
    return 128 + interruption.signal();
  } catch (const Unequal&) {
    return kFailed;
  } catch (const UserError& error) {
    print_error(error.what());
    return kWrong;
  } catch (const std::bad_alloc&) {
    print_error("out of memory");
    return kFailed;
  } catch (const std::length_error&) {
    print_error("out of memory: the requested size is larger than any machine's memory");
    return kFailed;
  } catch (const std::filesystem::filesystem_error& error) {
    print_error(fmt::format("{}: {}", error.path1().string(), error.code().message()));
    return kFailed;
  } catch (const std::exception& error) {
    print_error(error.what());
    return kFailed;
  }
}
