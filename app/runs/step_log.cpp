#include "runs/step_log.h"

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include <fmt/format.h>

namespace dtrain {

namespace {

double read_clock(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// The time at which the process started, on the monotonic clock. It is computed before main() runs: the
/// current time minus the CPU time that loading the program took.
const double kStart = read_clock(CLOCK_MONOTONIC) - read_clock(CLOCK_PROCESS_CPUTIME_ID);

}  // namespace

double seconds_since_start() {
  return read_clock(CLOCK_MONOTONIC) - kStart;
}

namespace {

/// Throws UserError if a nonempty file does not start like a step log, so that other files are not changed.
void reject_foreign_file(const std::string& path) {
  constexpr std::string_view kBegins = R"({"step")";
  std::error_code missing;
  if (!std::filesystem::is_regular_file(path, missing)) return;
  std::string start(kBegins.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<size_t>(file.gcount()));
  if (!start.empty() && start != kBegins)
    throw UserError(fmt::format(
        "{}: this file exists and is not a step log; give the name of a step log or of a new file", path));
}

}  // namespace

StepLog::StepLog(const std::string& path, Observer& next) : path_(path), next_(next) {
  reject_foreign_file(path);
  file_.reset(std::fopen(path.c_str(), "a"));
  if (!file_)
    throw UserError(
        fmt::format("{}: the step log cannot be opened: {}", path, std::generic_category().message(errno)));
  std::setvbuf(file_.get(), nullptr, _IOLBF, BUFSIZ);
}

void StepLog::on_step(const Progress& progress) {
  const Json line = Json::object()
                        .set("step", progress.global_step)
                        .set("loss", progress.step_loss)
                        .set("seconds", seconds_since_start());
  const std::string text = line.dump() + "\n";
  std::fwrite(text.data(), 1, text.size(), file_.get());
  next_.on_step(progress);
}

void StepLog::on_epoch(const Json& record, int64_t epochs) {
  // A failed log must not end the run.
  if (std::ferror(file_.get())) next_.on_warning(fmt::format("{}: the step log cannot be written", path_));
  std::clearerr(file_.get());
  next_.on_epoch(record, epochs);
}

}  // namespace dtrain
