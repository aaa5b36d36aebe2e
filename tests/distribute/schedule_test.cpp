// Pipeline schedules: the order of tasks, the time and memory that they take, and diagrams.
#include "distribute/schedule.h"

#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "base/error.h"
#include "distribute/schedule_table.h"

using namespace dtrain;
using Kind = StageTask::Kind;

namespace {

constexpr PipelineSchedule kSchedules[] = {PipelineSchedule::sequential, PipelineSchedule::gpipe,
                                           PipelineSchedule::one_f_one_b};

/// Calls check(schedule, stages, microbatches) for many combinations of schedules, stages and microbatches.
template <class Check>
void for_pipelines(const Check& check) {
  for (const PipelineSchedule schedule : kSchedules)
    for (int stages = 1; stages <= 8; ++stages)
      for (int microbatches = 1; microbatches <= 32; ++microbatches) {
        CAPTURE(static_cast<int>(schedule));
        CAPTURE(stages);
        CAPTURE(microbatches);
        check(schedule, stages, microbatches);
      }
}

PipelineTimes equal_times(int stages, double forward, double backward) {
  return {std::vector<PipelineTimes::Stage>(static_cast<size_t>(stages), {forward, backward}), {}};
}

/// Formats tasks as "F0 F1 B0 B1".
std::string text_of(const std::vector<StageTask>& tasks) {
  std::string text;
  for (const StageTask& task : tasks)
    text += (text.empty() ? "" : " ") + std::string(task.kind == Kind::forward ? "F" : "B") +
            std::to_string(task.microbatch);
  return text;
}

}  // namespace

TEST_CASE("the schedules of three stages and four microbatches are those in the papers") {
  CHECK(text_of(stage_tasks(PipelineSchedule::sequential, 1, 3, 2)) == "F0 B0 F1 B1");
  for (int stage = 0; stage < 3; ++stage)
    CHECK(text_of(stage_tasks(PipelineSchedule::gpipe, stage, 3, 4)) == "F0 F1 F2 F3 B0 B1 B2 B3");
  CHECK(text_of(stage_tasks(PipelineSchedule::one_f_one_b, 0, 3, 4)) == "F0 F1 F2 B0 F3 B1 B2 B3");
  CHECK(text_of(stage_tasks(PipelineSchedule::one_f_one_b, 1, 3, 4)) == "F0 F1 B0 F2 B1 F3 B2 B3");
  CHECK(text_of(stage_tasks(PipelineSchedule::one_f_one_b, 2, 3, 4)) == "F0 B0 F1 B1 F2 B2 F3 B3");
  CHECK(text_of(stage_tasks(PipelineSchedule::one_f_one_b, 0, 8, 2)) == "F0 F1 B0 B1");
}

TEST_CASE("each stage computes each microbatch once forward and once backward") {
  for_pipelines([](PipelineSchedule schedule, int stages, int microbatches) {
    for (int stage = 0; stage < stages; ++stage) {
      std::set<std::pair<Kind, int>> done;
      int backwards = 0;
      for (const StageTask& task : stage_tasks(schedule, stage, stages, microbatches)) {
        CHECK(done.emplace(task.kind, task.microbatch).second);
        if (task.kind == Kind::forward) continue;
        CHECK(done.contains({Kind::forward, task.microbatch}));
        CHECK(task.microbatch == backwards++);  // a single device would sum the gradients in the same order
      }
      CHECK(done.size() == 2 * static_cast<size_t>(microbatches));
      CHECK(done.lower_bound({Kind::forward, 0})->second == 0);
    }
  });
}

TEST_CASE(
    "a stage keeps the planned number of microbatches, which in 1F1B is at most one per remaining stage") {
  for_pipelines([](PipelineSchedule schedule, int stages, int microbatches) {
    for (int stage = 0; stage < stages; ++stage) {
      int held = 0, most = 0;
      for (const StageTask& task : stage_tasks(schedule, stage, stages, microbatches)) {
        held += task.kind == Kind::forward ? 1 : -1;
        most = std::max(most, held);
      }
      CHECK(most == most_in_flight(schedule, stage, stages, microbatches));
      if (schedule == PipelineSchedule::one_f_one_b) CHECK(most == std::min(microbatches, stages - stage));
    }
  });
}

TEST_CASE("stages of equal times are idle for (stages - 1) / (microbatches + stages - 1) of the time") {
  for_pipelines([](PipelineSchedule schedule, int stages, int microbatches) {
    for (const auto& [forward, backward] : {std::pair(1.0, 1.0), std::pair(1.0, 2.0), std::pair(3.0, 0.5)}) {
      const PipelineTimeline timeline =
          simulate(schedule, microbatches, equal_times(stages, forward, backward));
      const int steps =
          schedule == PipelineSchedule::sequential ? microbatches * stages : microbatches + stages - 1;
      CHECK(timeline.makespan() == doctest::Approx(steps * (forward + backward)));
      CHECK(timeline.bubble() == doctest::Approx(1 - static_cast<double>(microbatches) / steps));
      CHECK(timeline.bubble() == doctest::Approx(least_bubble(schedule, stages, microbatches)));
    }
  });
}

TEST_CASE("a task begins only when its stage is free and its input is ready") {
  PipelineTimes times{{{1, 2}, {4, 1}, {0.5, 3}}, {0.25, 2}};
  for (const PipelineSchedule schedule : kSchedules) {
    CAPTURE(static_cast<int>(schedule));
    constexpr int kMicrobatches = 5;
    const PipelineTimeline timeline = simulate(schedule, kMicrobatches, times);
    double end[2][3][kMicrobatches] = {};
    for (size_t stage = 0; stage < 3; ++stage)
      for (const auto& entry : timeline.stages[stage])
        end[entry.task.kind == Kind::forward ? 0 : 1][stage][entry.task.microbatch] = entry.end;
    for (size_t stage = 0; stage < 3; ++stage) {
      double free_at = 0;
      for (const auto& [task, begin, ended] : timeline.stages[stage]) {
        const bool forward = task.kind == Kind::forward;
        double ready = forward ? 0 : end[0][stage][task.microbatch];
        if (forward && stage > 0) ready = end[0][stage - 1][task.microbatch] + times.transfers[stage - 1];
        if (!forward && stage < 2)
          ready = std::max(ready, end[1][stage + 1][task.microbatch] + times.transfers[stage]);
        CHECK(begin == std::max(free_at, ready));  // tasks begin as early as possible
        CHECK(ended == begin + (forward ? times.stages[stage].forward : times.stages[stage].backward));
        free_at = ended;
      }
    }
    // The whole batch takes at least as long as the second stage computes.
    CHECK(timeline.busy(1) == doctest::Approx(kMicrobatches * 5.0));
    CHECK(timeline.makespan() > timeline.busy(1));
  }
}

TEST_CASE("stages that wait for each other are an error") {
  // This is a deadlock. The second stage waits for microbatch 1 before it computes microbatch 0. But the
  // first stage computes microbatch 1 only after the backward pass of microbatch 0.
  const std::vector<std::vector<StageTask>> tasks = {
      {{Kind::forward, 0}, {Kind::backward, 0}, {Kind::forward, 1}, {Kind::backward, 1}},
      {{Kind::forward, 1}, {Kind::forward, 0}, {Kind::backward, 0}, {Kind::backward, 1}}};
  CHECK_THROWS_WITH_AS(simulate(tasks, equal_times(2, 1, 1)),
                       "the pipeline stages wait for each other (deadlock): stage 0 cannot begin the "
                       "backward pass of microbatch 0",
                       Error);
}

TEST_CASE("a schedule is drawn as text") {
  const auto drawn = [](const PipelineTimeline& timeline, int columns) {
    std::string text;
    for (const std::string& line : draw_timeline(timeline, columns)) text += line + "\n";
    return text;
  };
  const auto picture = [&](PipelineSchedule schedule, double backward, int columns) {
    return drawn(simulate(schedule, 3, equal_times(2, 0.001, backward)), columns);
  };
  CHECK(picture(PipelineSchedule::gpipe, 0.001, 80) ==
        "F0 F1 F2 ..... B0 B1 B2\n"
        ".. F0 F1 F2 B0 B1 B2 ..\n");
  CHECK(picture(PipelineSchedule::one_f_one_b, 0.002, 80) ==
        "F0 F1 ..... B0--- F2 B1--- .. B2---\n"
        ".. F0 B0--- F1 B1--- F2 B2--- .....\n");
  // If the diagram is too wide, it is drawn without spaces. If this is still too wide, it is drawn without
  // numbers.
  CHECK(picture(PipelineSchedule::gpipe, 0.001, 16) ==
        "F0F1F2... B0B1B2\n"
        ". F0F1F2B0B1B2.\n");
  CHECK(picture(PipelineSchedule::gpipe, 0.001, 8) ==
        "FFF..BBB\n"
        ".FFFBBB.\n");
  CHECK(picture(PipelineSchedule::one_f_one_b, 0.001, 4) ==
        "FB*B\n"
        "F**B\n");
  // A stage whose tasks take no time is drawn, too.
  CHECK(drawn(simulate(PipelineSchedule::gpipe, 2, {{{0, 0}, {1, 1}}, {}}), 8) ==
        "........\n"
        "FFFFBBBB\n");
  CHECK(drawn(simulate(PipelineSchedule::gpipe, 2, equal_times(2, 0, 0)), 8) == "\n\n");
  for_pipelines([](PipelineSchedule schedule, int stages, int microbatches) {
    if (microbatches % 5 != 0) return;
    for (const int columns : {40, 120})
      for (const std::string& line :
           draw_timeline(simulate(schedule, microbatches, equal_times(stages, 0.001, 0.0017)), columns))
        CHECK(line.size() <= static_cast<size_t>(columns));
  });
}

TEST_CASE("the table of a schedule shows how busy each stage is, and explains the idle time") {
  const std::vector<std::string> devices = {"gpu:0", "gpu:1", "gpu:2"};
  CHECK(schedule_table(PipelineSchedule::one_f_one_b, 3, equal_times(3, 0.001, 0.001), devices, 80) ==
        "stage     busy  held  F forward, B backward, . waits\n"
        "0 gpu:0   60 %     3  F0 F1 F2 ..... B0 .. B1 .. B2\n"
        "1 gpu:1   60 %     2  .. F0 F1 .. B0 F2 B1 .. B2 ..\n"
        "2 gpu:2   60 %     1  ..... F0 B0 F1 B1 F2 B2 .....\n"
        "bubble: the stages are idle for 40 % of the total time (10 ms); stages of equal duration would be "
        "idle for 40 %\n");
  const std::string uneven =
      schedule_table(PipelineSchedule::gpipe, 4, {{{1, 1}, {2, 2}, {1, 1}}, {}}, devices, 120);
  CHECK(uneven.find(
            "bubble: the stages are idle for 47 % of the total time (20 s); stages of equal duration would "
            "be idle for 33 %\n"
            "stage 1 computes 1.50 times as long as the average stage\n") != std::string::npos);
}
