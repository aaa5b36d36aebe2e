#include "sweep/sweep_runner.h"

#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/console.h"
#include "cli/exit_codes.h"
#include "device/device.h"

namespace dtrain {

namespace {

/// Returns the content of a log file, to which a child process wrote its standard error.
std::string read_log(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// Returns a log's text from its first error on, or "" if there is none.
std::string error_in(const std::string& log) {
  constexpr std::string_view kError = "error: ";
  const size_t found = log.find(kError);
  if (found == std::string::npos) return "";
  const size_t before = log.rfind('\n', found);
  const size_t line = before == std::string::npos ? 0 : before + 1;
  std::string text = log.substr(line == found ? found + kError.size() : line);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

}  // namespace

SweepRunner::SweepRunner(const SweepFolder& folder, const std::vector<PlannedRun>& runs, size_t most_at_once,
                         Requests& requests, OnEnd on_end)
    : folder_(folder),
      runs_(runs),
      most_at_once_(most_at_once),
      requests_(requests),
      on_end_(std::move(on_end)),
      free_cores_(available_cores()) {
  for (size_t i = 0; i < runs.size(); ++i) {
    results_.push_back(result_of(i));
    if (!results_.back().finished) waiting_.push_back(i);
    results_.back().failed = false;  // the failed run is tried again
  }
}

SweepRunner::~SweepRunner() {
  // Sends SIGTERM to all runs first; the destructors of the elements of `active_` then wait for the runs.
  for (const Active& active : active_) active.process.signal(SIGTERM);
}

SweepRun SweepRunner::result_of(size_t run) const {
  SweepRun result;
  try {
    result = sweep_run_of(read_run_files(folder_.run_path(runs_[run])));
  } catch (const UserError&) {  // the run has not started
  }
  result.values = runs_[run].values;
  return result;
}

void SweepRunner::check_first() const {
  if (waiting_.empty()) return;
  const PlannedRun& run = runs_[waiting_.front()];
  ChildProcess check({"check", folder_.config_path(run), "--quiet"}, folder_.log_path(run),
                     available_cores());
  check.wait();
  if (check.exit_code() != kWrong) return;
  const std::string error = error_in(read_log(folder_.log_path(run)));
  if (!error.empty()) throw UserError(error);
  throw UserError(fmt::format("{0}: the configuration has an error; run `dtrain check {0}` to see the error",
                              folder_.config_path(run)));
}

void SweepRunner::train() {
  try {
    train_all();
  } catch (const Error& error) {
    // Prints the error now, because the destructor waits until the active runs have saved and ended.
    print_error(error.what());
    if (!active_.empty())
      print_note(
          fmt::format("stopping {}", format_plural(static_cast<int64_t>(active_.size()), "active run")));
    throw;
  }
}

void SweepRunner::train_all() {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kBetweenLooks(20);
  constexpr std::chrono::minutes kSilence(1);
  Clock::time_point reported_at = Clock::now();
  while (!active_.empty() || (!waiting_.empty() && !is_stopping_)) {
    pass_signals_on();
    start_next();
    if (take_ended()) {
      reported_at = Clock::now();
    } else {
      std::this_thread::sleep_for(kBetweenLooks);
    }
    if (Clock::now() - reported_at < kSilence) continue;
    print_note(fmt::format("{} running, {} waiting",
                           format_plural(static_cast<int64_t>(active_.size()), "run"),
                           format_count(static_cast<int64_t>(waiting_.size()))));
    reported_at = Clock::now();
  }
}

void SweepRunner::start_next() {
  while (!waiting_.empty() && !is_stopping_ && active_.size() < most_at_once_) {
    const size_t next = waiting_.front();
    const PlannedRun& run = runs_[next];
    const auto wanted = static_cast<size_t>(run.cores);
    if (wanted > free_cores_.size()) return;
    std::vector<int> cores(free_cores_.begin(), free_cores_.begin() + run.cores);
    free_cores_.erase(free_cores_.begin(), free_cores_.begin() + run.cores);
    waiting_.pop_front();
    const std::vector<std::string> arguments{
        "fit", folder_.config_path(run), "--output", folder_.run_path(run), "--resume", "--quiet"};
    active_.emplace_back(next, std::move(cores), arguments, folder_.log_path(run));
  }
}

void SweepRunner::pass_signals_on() {
  const bool save = requests_.save.exchange(false);
  const int stop = requests_.stop;
  for (const Active& active : active_) {
    if (save) active.process.signal(SIGUSR1);
    if (stop && !is_stopping_) active.process.signal(stop);
  }
  is_stopping_ = is_stopping_ || stop != 0;
}

bool SweepRunner::take_ended() {
  bool any = false;
  for (auto active = active_.begin(); active != active_.end();) {
    if (!active->process.has_ended()) {
      ++active;
      continue;
    }
    const size_t run = active->run;
    const int code = active->process.exit_code();
    free_cores_.insert(free_cores_.end(), active->cores.begin(), active->cores.end());
    active = active_.erase(active);
    SweepRun& result = results_[run];
    result = result_of(run);
    result.finished = code == 0;
    result.failed = code != 0 && !is_stopping_;
    if (result.failed) {
      const std::string error = first_line(error_in(read_log(folder_.log_path(runs_[run]))));
      result.note = error.empty() ? fmt::format("exit code {}", code) : error;
    }
    on_end_(run, results_);
    any = true;
  }
  return any;
}

}  // namespace dtrain
