// Tests the update at the end of a step: its instructions, and the all-reduces that start in the backward
// pass.
#include "program/update_program.h"

#include <string>
#include <vector>

#include "plan_run.h"
#include "planned_layers.h"
#include "program/print.h"

namespace dtrain::test {

namespace {

std::string text_of(const UpdateRequest& request) {
  return "\n" + update_text(lower_update(request));
}

/// Returns the request for a model with 1,000 trained floats and 24 statistics.
UpdateRequest request_of(GradientReduction reduction, Range share = {0, 1024}) {
  return {
      .slot = 0, .reduction = reduction, .gradients = 1024, .trained = 1000, .share = share, .bucket = 400};
}

/// Records all-reduces, and reads the gradients when an all-reduce begins.
class RecordedReductions final : public ParameterUpdate {
 public:
  using ReadGradients = std::function<Values()>;
  explicit RecordedReductions(ReadGradients read) : read_(std::move(read)) {}

  void run(const AllReduceGradients& work) override {
    ranges.push_back(work.range);
    gradients.push_back(read_());
  }
  void run(const AllReduceRowWeights&) override { ++row_weights; }
  void run(const JoinReductions&) override { FAIL("not in a backward pass"); }
  void run(const ReduceScatterGradients&) override { FAIL("not in a backward pass"); }
  void run(const AddPenaltyGradients&) override { FAIL("not in a backward pass"); }
  void run(const SumSquares&) override { FAIL("not in a backward pass"); }
  void run(const AllReduceSquares&) override { FAIL("not in a backward pass"); }
  void run(const AllReduceRowWeightsOnHost&) override { FAIL("not in a backward pass"); }
  void run(const ScaleGradient&) override { FAIL("not in a backward pass"); }
  void run(const FindDirections&) override { FAIL("not in a backward pass"); }
  void run(const AllReduceDirections&) override { FAIL("not in a backward pass"); }
  void run(const UpdateParameters&) override { FAIL("not in a backward pass"); }
  void run(const SynchronizeReplicas&) override { FAIL("not in a backward pass"); }
  void run(const ConstrainParameters&) override { FAIL("not in a backward pass"); }
  void run(const SynchronizeDevice&) override { FAIL("not in a backward pass"); }
  void run(const GatherUpdated&) override { FAIL("not in a backward pass"); }

  std::vector<Range> ranges;
  std::vector<Values> gradients;
  int row_weights = 0;

 private:
  ReadGradients read_;
};

}  // namespace

TEST_CASE("one replica updates its parameters on the device") {
  UpdateRequest request = request_of(GradientReduction::none);
  CHECK(text_of(request) == R"(
slot  phase   call                  floats  runs
----  ------  -----------------  ---------  -------------
   0  update  parameters update  [0, 1024)  on the device
)");
  request.needs_norm = request.has_row_weights = request.needs_directions = true;
  CHECK(text_of(request) == R"(
slot  phase   call                  floats  runs
----  ------  -----------------  ---------  -------------
   0  update  gradient squares   [0, 1000)  on the device
   0  update  gradient scale                on the device
   0  update  directions         [0, 1024)  on the device
   0  update  parameters update  [0, 1024)  on the device
)");
}

TEST_CASE("GPUs all-reduce gradients in buckets, and each updates all parameters") {
  UpdateRequest request = request_of(GradientReduction::all_reduce);
  request.has_row_weights = true;
  CHECK(text_of(request) == R"(
slot  phase   call                         floats  runs
----  ------  ----------------------  -----------  ------------------------------------------
   0  reduce  gradients all-reduce       [0, 400)  on the device, during backward if possible
   0  reduce  gradients all-reduce     [400, 800)  on the device, during backward if possible
   0  reduce  gradients all-reduce    [800, 1024)  on the device, during backward if possible
   0  reduce  row weights all-reduce               on the device, during backward if possible
   0  reduce  reductions join                      on the device
   0  update  gradient scale                       on the device
   0  update  parameters update         [0, 1024)  on the device
)");
}

TEST_CASE("an update that may be skipped computes the gradient's scale") {
  UpdateRequest request = request_of(GradientReduction::reduce_scatter, {512, 1024});
  request.may_skip = true;
  CHECK(text_of(request) == R"(
slot  phase   call                           floats  runs
----  ------  ------------------------  -----------  -------------
   0  reduce  gradients reduce-scatter  [512, 1024)  with the host
   0  update  gradient scale                         with the host
   0  update  parameters update         [512, 1024)  with the host
)");
}

TEST_CASE("the norm of a model on several slots counts each gradient once") {
  UpdateRequest request = request_of(GradientReduction::all_reduce);
  request.has_other_slots = request.needs_norm = true;
  const std::string first = text_of(request);
  request.counts_share = false;
  const std::string second = text_of(request);
  CHECK(first.find("gradient squares all-reduce    [0, 1000)  with the host") != std::string::npos);
  CHECK(second.find("gradient squares all-reduce         none  with the host") != std::string::npos);
}

TEST_CASE(
    "replicas in one memory update their shares, and sum norms, row weights and directions over all "
    "replicas") {
  UpdateRequest request = request_of(GradientReduction::reduce_scatter, {512, 1024});
  request.needs_norm = request.has_row_weights = request.needs_directions = request.shares_memory = true;
  CHECK(text_of(request) == R"(
slot  phase   call                              floats  runs
----  ------  ---------------------------  -----------  -------------
   0  reduce  gradients reduce-scatter     [512, 1024)  with the host
   0  reduce  row weights all-reduce                    with the host
   0  reduce  gradient squares all-reduce  [512, 1000)  with the host
   0  update  gradient scale                            with the host
   0  update  directions                   [512, 1024)  with the host
   0  reduce  directions all-reduce        [512, 1024)  with the host
   0  update  parameters update            [512, 1024)  with the host
   0  update  device synchronize                        with the host
)");
}

TEST_CASE("replicas of several processes sum gradients in buckets, and update their shares") {
  UpdateRequest request = request_of(GradientReduction::over_processes, {512, 1024});
  request.needs_norm = request.has_row_weights = request.needs_directions = request.shares_memory = true;
  CHECK(text_of(request) == R"(
slot  phase   call                              floats  runs
----  ------  ---------------------------  -----------  ------------------------------------------
   0  reduce  gradients all-reduce            [0, 400)  on the device, during backward if possible
   0  reduce  gradients all-reduce          [400, 800)  on the device, during backward if possible
   0  reduce  gradients all-reduce         [800, 1024)  on the device, during backward if possible
   0  reduce  reductions join                           with the host
   0  reduce  gradient squares all-reduce  [512, 1000)  with the host
   0  update  gradient scale                            with the host
   0  update  directions                   [512, 1024)  with the host
   0  reduce  directions all-reduce        [512, 1024)  with the host
   0  update  parameters update            [512, 1024)  with the host
   0  update  device synchronize                        with the host
)");
}

TEST_CASE("slots of several processes wait for each other before they update parameters") {
  UpdateRequest request = request_of(GradientReduction::over_processes, {512, 1024});
  for (const bool has_other_slots : {false, true}) {
    request.has_other_slots = has_other_slots;
    const UpdateProgram program = lower_update(request);
    const auto* const join = std::get_if<JoinReductions>(&program.on_host.at(0).work);
    REQUIRE(join);
    CHECK(join->with_other_slots == has_other_slots);
  }
}

TEST_CASE("the update of sharded gradients only updates and gathers parameters") {
  UpdateRequest request = request_of(GradientReduction::in_backward, {0, 512});
  request.gathers_parameters = true;
  CHECK(text_of(request) == R"(
slot  phase   call                 floats  runs
----  ------  -----------------  --------  -------------
   0  update  parameters update  [0, 512)  with the host
   0  update  parameters gather            with the host
)");
}

TEST_CASE("sums of sharded gradients that backward starts are joined first") {
  UpdateRequest request = request_of(GradientReduction::in_backward, {0, 512});
  request.joins_backward = request.needs_norm = request.gathers_parameters = true;
  CHECK(text_of(request) == R"(
slot  phase   call                           floats  runs
----  ------  ---------------------------  --------  -------------
   0  reduce  reductions join                        with the host
   0  reduce  gradient squares all-reduce  [0, 512)  with the host
   0  update  gradient scale                         with the host
   0  update  parameters update            [0, 512)  with the host
   0  update  parameters gather                      with the host
)");
}

TEST_CASE("the gradients of penalties are part of the norm, and need the sum of the row weights first") {
  UpdateRequest request = request_of(GradientReduction::reduce_scatter, {512, 1024});
  request.needs_norm = request.has_row_weights = request.has_penalties = true;
  CHECK(text_of(request) == R"(
slot  phase   call                              floats  runs
----  ------  ---------------------------  -----------  -------------
   0  reduce  gradients reduce-scatter     [512, 1024)  with the host
   0  reduce  row weights all-reduce                    with the host
   0  update  penalty gradients            [512, 1000)  with the host
   0  reduce  gradient squares all-reduce  [512, 1000)  with the host
   0  update  gradient scale                            with the host
   0  update  parameters update            [512, 1024)  with the host
)");
}

TEST_CASE("replicas wait before they update parameters that the penalties of others read") {
  UpdateRequest request = request_of(GradientReduction::reduce_scatter, {512, 1024});
  request.has_penalties = request.penalties_read_all = request.updates_common_copy = true;
  CHECK(text_of(request) == R"(
slot  phase   call                           floats  runs
----  ------  ------------------------  -----------  -------------
   0  reduce  gradients reduce-scatter  [512, 1024)  with the host
   0  update  penalty gradients         [512, 1000)  with the host
   0  update  device synchronize                     with the host
   0  update  replicas synchronize                   with the host
   0  update  parameters update         [512, 1024)  with the host
)");
}

TEST_CASE("constraints follow the update of the whole parameters") {
  UpdateRequest request = request_of(GradientReduction::reduce_scatter, {512, 1024});
  request.has_constraints = request.updates_common_copy = request.shares_memory = true;
  CHECK(text_of(request) == R"(
slot  phase   call                           floats  runs
----  ------  ------------------------  -----------  -------------
   0  reduce  gradients reduce-scatter  [512, 1024)  with the host
   0  update  parameters update         [512, 1024)  with the host
   0  update  device synchronize                     with the host
   0  update  replicas synchronize                   with the host
   0  update  parameters constrain      [512, 1000)  with the host
   0  update  device synchronize                     with the host
)");
  request = request_of(GradientReduction::in_backward, {0, 512});
  request.has_constraints = request.gathers_parameters = true;
  CHECK(text_of(request) == R"(
slot  phase   call                     floats  runs
----  ------  --------------------  ---------  -------------
   0  update  parameters update      [0, 512)  with the host
   0  update  parameters gather                with the host
   0  update  parameters constrain  [0, 1000)  with the host
)");
}

TEST_CASE("every rank takes part in the sum of directions, even one whose share is the whole layout") {
  // The shares of the other ranks are empty. The other ranks still take part in the all-reduce, and wait for
  // this rank.
  UpdateRequest request = request_of(GradientReduction::in_backward);
  request.needs_directions = true;
  CHECK(text_of(request).find("directions all-reduce") != std::string::npos);
}

TEST_CASE("an update cannot run instructions that need a frame") {
  RecordedReductions update([] { return Values(); });
  CHECK_THROWS_AS(execute({0, Phase::backward, NodeId::none, "gradients zero", ZeroBucket{}}, update),
                  std::logic_error);
}

TEST_CASE("gradients that are ready are all-reduced in full buckets") {
  Compilation made(chain(dense(), dense(), dense()), {},
                   {.all_reduce_bucket = 1 << 20, .all_reduces_row_weights = true});
  lower({&made});
  CHECK(made.text().find("gradients ready") != std::string::npos);
  reduce_gradients(made.step);
  CHECK(made.text().find("gradients ready") == std::string::npos);
  CHECK(made.text().find("row weights all-reduce") != std::string::npos);
}

DEVICE_TEST_CASE("an all-reduce begins when its gradients are final, and every gradient is reduced once") {
  PlanRun run(device, kModel, nullptr, {.all_reduce_bucket = 100, .all_reduces_row_weights = true});
  run.run();
  const Values final = run.gradients;
  PlanRun::Microbatch microbatch(run, 1, 3);
  RecordedReductions reductions([&] { return microbatch.gradients(); });
  microbatch.reduce_with(&reductions);
  run_all(microbatch.frame, PlanRun::kStep);
  int64_t end = 0;
  for (size_t i = 0; i < reductions.ranges.size(); ++i) {
    const Range range = reductions.ranges[i];
    CHECK(range.begin == end);
    end = range.end;
    for (int64_t at = range.begin; at < range.end; ++at) {
      CAPTURE(at);
      CHECK(reductions.gradients[i][static_cast<size_t>(at)] == final[static_cast<size_t>(at)]);
    }
  }
  CHECK(end == run.layout.with_gradient());
  CHECK(reductions.ranges.size() > 5);
  CHECK(reductions.row_weights == 1);
}

}  // namespace dtrain::test
