// Trains the runs of a sweep in parallel.
#pragma once

#include <functional>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "report/sweep.h"
#include "sweep/child_process.h"
#include "sweep/sweep_folder.h"
#include "train/requests.h"

namespace dtrain {

/// Runs a process `dtrain fit --resume` for each run. Each process has its own cores, and the number of
/// parallel processes is limited by the number of cores. The result of a run depends on its number of cores,
/// but not on the number of runs that are trained in parallel.
class SweepRunner {
 public:
  /// Called after each run with its index, to update tables and messages.
  using OnEnd = std::function<void(size_t run, const std::vector<SweepRun>& results)>;

  /// `folder`, `runs` and `requests` must outlive the runner.
  SweepRunner(const SweepFolder& folder, const std::vector<PlannedRun>& runs, size_t most_at_once,
              Requests& requests, OnEnd on_end);
  /// Sends SIGTERM to the active runs, so that they save and end, and waits for them.
  ~SweepRunner();
  SweepRunner(const SweepRunner&) = delete;
  SweepRunner& operator=(const SweepRunner&) = delete;

  /// Trains the unfinished runs. A failed run does not stop the others. After a stop request, the active runs
  /// save and end, and no other run starts. An error of this process, such as a table that cannot be written,
  /// is printed at once and then thrown. The destructor then ends the active runs.
  void train();

  /// Returns the state of the runs as found in their directories.
  const std::vector<SweepRun>& results() const { return results_; }
  size_t to_train() const { return waiting_.size(); }

  /// Throws UserError if `dtrain check` rejects the first run to be trained; problems with the data would
  /// affect all runs.
  void check_first() const;

 private:
  struct Active {
    Active(size_t place, std::vector<int> on, const std::vector<std::string>& arguments,
           const std::string& log)
        : run(place), cores(std::move(on)), process(arguments, log, cores) {}

    size_t run;
    std::vector<int> cores;
    ChildProcess process;
  };

  void train_all();
  void start_next();
  void pass_signals_on();
  bool take_ended();
  SweepRun result_of(size_t run) const;

  const SweepFolder& folder_;
  const std::vector<PlannedRun>& runs_;
  const size_t most_at_once_;
  Requests& requests_;
  const OnEnd on_end_;
  std::vector<SweepRun> results_;
  std::list<size_t> waiting_;
  std::list<Active> active_;
  std::vector<int> free_cores_;
  bool is_stopping_ = false;
};

}  // namespace dtrain
