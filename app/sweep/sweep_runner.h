// Trains the runs of a sweep, side by side.
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

/// Each run is `dtrain fit --resume` in a process with cores of its own, so many at once as there are cores
/// for. How many those are changes no bit of a run: the number of its cores alone does.
class SweepRunner {
 public:
  /// After each run, with its place among them: for tables and messages.
  using OnEnd = std::function<void(size_t run, const std::vector<SweepRun>& results)>;

  /// The arguments live longer.
  SweepRunner(const SweepFolder& folder, const std::vector<PlannedRun>& runs, size_t most_at_once,
              Requests& requests, OnEnd on_end);

  /// Trains what has not finished. A run that fails does not stop the others. Where a stop is asked for, the
  /// runs under way save and end, and no other begins.
  void train();

  /// The runs as their directories show them.
  const std::vector<SweepRun>& results() const { return results_; }
  size_t to_train() const { return waiting_.size(); }

  /// Throws UserError where `dtrain check` refuses the first run that is to be trained, as it would all of
  /// them where the data are not as expected.
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
  bool told_to_stop_ = false;
};

}  // namespace dtrain
