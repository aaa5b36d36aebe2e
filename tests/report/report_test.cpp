// Tests the data of a report page.
#include "report/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "config/yaml/yaml.h"
#include "support/speed.h"

using namespace dtrain;

namespace {

RunFiles run_of(int64_t epochs, const std::string& name = "run") {
  RunFiles run;
  run.path = "runs/" + name;
  run.config_text = fmt::format(R"(
name: '{}'
model:
  inputs: {{x: [4]}}
  layers: [{{dense: {{units: 3, name: kind}}}}, {{dense: {{units: 3, name: size, inputs: x}}}}]
  outputs: [kind, size]
dataset: {{train: {{synthetic: {{samples: 8, targets: {{kind: {{classes: 3}}, size: {{classes: 3}}}}}}}}}}
train:
  epochs: 1000
  loss: {{sparse_categorical_crossentropy: {{from_logits: true}}}}
  optimizer: sgd
  metrics: {{kind: [accuracy, confusion_matrix], size: [{{auc: {{name: roc}}}}, confusion_matrix, f1_score]}}
)",
                                name);
  Diagnostics diagnostics;
  run.config = parse_yaml(run.config_text, "config.yaml", diagnostics);
  run.metrics = MetricFacts::of(run.config);
  for (int64_t epoch = 1; epoch <= epochs; ++epoch) {
    Json record = Json::object().set("epoch", epoch).set("step", epoch * 10);
    for (const char* metric : {"loss", "kind_accuracy", "val_loss", "val_kind_accuracy", "size_roc",
                               "learning_rate", "seconds", "samples_per_second"})
      record.set(metric, 1.0 / static_cast<double>(epoch) + 0.123456789);
    run.records.push_back(std::move(record));
  }
  run.events.push_back(Json::object().set("event", "fit").set("time", "2026-01-01T00:00:00+0000"));
  return run;
}

}  // namespace

TEST_CASE("a curve keeps its ends and its peaks") {
  std::vector<double> values(10'000, 1.0);
  values[1234] = 50;
  values[7777] = -50;
  values[5000] = std::nan("");
  const std::vector<size_t> kept = thin_curve(values, 100);
  CHECK(kept.size() <= 100);
  CHECK(kept.front() == 0);
  CHECK(kept.back() == 9999);
  for (size_t i = 1; i < kept.size(); ++i) CHECK(kept[i - 1] < kept[i]);
  CHECK(std::find(kept.begin(), kept.end(), 1234) != kept.end());
  CHECK(std::find(kept.begin(), kept.end(), 7777) != kept.end());
  CHECK(thin_curve(std::vector<double>(100, 0.0), 100).size() == 100);
  CHECK(thin_curve({}, 100).empty());
}

TEST_CASE("a report of 20 runs of 1,000 epochs takes less than 2 MB and one second") {
  std::vector<RunFiles> runs;
  for (int i = 0; i < 20; ++i) runs.push_back(run_of(1000, fmt::format("run-{}", i)));
  const std::clock_t begin = std::clock();  // CPU time, since other programs run at the same time
  const std::string page = report_page(runs, "dtrain 0", "2026-01-01T00:00:00+0000");
  CHECK(page.size() < 2'000'000);
  CHECK(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC < test::kSlowness);
}

TEST_CASE("names in a report cannot end the script") {
  RunFiles run = run_of(1, "</script><script>alert(1)</script><!--");
  run.records[0].set("</script>", 1.0);
  const std::string page = report_page({&run, 1}, "dtrain 0", "now");
  const auto count = [&](std::string_view text) {
    size_t found = 0;
    for (size_t at = page.find(text); at != std::string::npos; at = page.find(text, at + 1)) ++found;
    return found;
  };
  RunFiles harmless = run_of(1);
  const std::string plain = report_page({&harmless, 1}, "dtrain 0", "now");
  CHECK(count("</script>") == 2);  // only the scripts of the page
  CHECK(count("<script") == 2);
  CHECK(page.find("alert(1)") != std::string::npos);
  CHECK(plain.find("@DATA@") == std::string::npos);
}

TEST_CASE("a report shows the state of a run") {
  RunFiles run = run_of(3);
  CHECK(run.name() == "run");
  CHECK(run.epochs() == 3);
  CHECK(run.epochs_configured() == 1000);
  CHECK(run.state() == "stopped");
  CHECK(run.how() == "killed, or the machine stopped");
  const auto end = [&](const char* how) {
    run.events.push_back(Json::object().set("event", "end").set("how", how));
  };
  end("early stopping: loss has not improved");
  CHECK(run.state() == "finished");
  run.events.push_back(Json::object().set("event", "resume"));
  CHECK(run.state() == "stopped");
  CHECK(run.how() == "killed, or the machine stopped");
  end("stopped at step 5");
  CHECK(run.how() == "stopped at step 5");
  run.running = true;
  CHECK(run.state() == "running");
  CHECK(run_of(1000).state() == "finished");
}

TEST_CASE("truncated lines are skipped") {
  CHECK(parse_json_lines("{\"a\": 1}\n{\"b\": \n{\"c\": 2}\n{\"d\": 3").size() == 2);
  CHECK(parse_json_lines("").empty());
}

TEST_CASE("the best epoch is determined by the metric that checkpoints monitor") {
  RunFiles run = run_of(5);
  run.records[2].set("val_kind_accuracy", 0.99).set("val_loss", 0.01);
  CHECK(best_record(run)->monitor == "val_loss");
  CHECK(best_record(run)->epoch == 3);
  CHECK(best_record(run, "val_kind_accuracy")->epoch == 1);
  CHECK(best_record(run, "size_roc")->epoch == 1);
  CHECK(best_record(run, "val_kind_accuracy", MonitorMode::min)->value ==
        doctest::Approx(1.0 / 5 + 0.123456789));
  CHECK_FALSE(best_record(run, "f1"));
  CHECK(report_data({&run, 1}, "dtrain 0", "now").at("larger_is_better").dump() ==
        R"(["kind_accuracy", "val_kind_accuracy", "size_roc"])");
  // If this version rejects the configuration of a run, the better direction (lower or higher) is known only
  // for losses.
  RunFiles unknown = run_of(5);
  unknown.metrics = {};
  CHECK_FALSE(best_record(unknown, "val_kind_accuracy"));
  CHECK(best_record(unknown, "val_kind_accuracy", MonitorMode::max)->epoch == 1);
  CHECK(best_record(unknown, "val_loss")->epoch == 5);
  const std::array<RunFiles, 2> both{unknown, run};
  CHECK(report_data(both, "dtrain 0", "now").at("larger_is_better").dump() ==
        R"(["kind_accuracy", "val_kind_accuracy", "size_roc"])");
  for (Json& record : run.records) record.set("val_loss", "nan");
  CHECK(best_record(run)->monitor == "loss");
}

TEST_CASE("tables have the class names of their output") {
  RunFiles run = run_of(1);
  const Json matrix = Json::parse("[[1, 0, 0], [0, 1, 0], [0, 0, 1]]");
  run.tables = {Json::object()
                    .set("epoch", 1)
                    .set("step", 10)
                    .set("kind_confusion_matrix", matrix)
                    .set("size_confusion_matrix", matrix)
                    .set("val_size_f1_score", Json::parse("[1, 0.5, 0]"))};
  run.events[0].set("classes", Json::parse(R"({"kind": ["cat", "dog", "owl"], "size": ["s", "m", "l"]})"));
  const Json classes = report_data({&run, 1}, "dtrain 0", "now").at("runs").items()[0].at("classes");
  CHECK(classes.at("kind_confusion_matrix").dump() == R"(["cat", "dog", "owl"])");
  CHECK(classes.at("size_confusion_matrix").dump() == R"(["s", "m", "l"])");
  CHECK(classes.at("val_size_f1_score").dump() == R"(["s", "m", "l"])");
}

TEST_CASE("tables show the best epoch if the run keeps its checkpoint, otherwise the last epoch") {
  RunFiles run = run_of(5);
  run.tables = parse_tables(
      "{\"epoch\": 3, \"step\": 30, \"f1\": [0.25]}\n{\"epoch\": 5, \"step\": 50, \"f1\": [0.5]}\n");
  run.records[2].set("val_loss", 0.01);
  const auto shown = [&] { return report_data({&run, 1}, "dtrain 0", "now").at("runs").items()[0]; };
  CHECK(shown().at("tables_epoch").as_int() == 5);
  CHECK(shown().at("tables").dump() == R"({"f1": [0.5]})");
  Diagnostics diagnostics;
  run.config = parse_yaml("checkpoint: {best: {monitor: val_loss}}", "config.yaml", diagnostics);
  CHECK(shown().at("tables_epoch").as_int() == 3);
  CHECK(shown().at("tables").dump() == R"({"f1": [0.25]})");
}

TEST_CASE("a confusion matrix of many classes is summarized") {
  Json matrix = Json::array();
  const int64_t size = kMostMatrixClasses + 1;
  for (int64_t i = 0; i < size; ++i) {
    Json row = Json::array();
    for (int64_t j = 0; j < size; ++j)
      row.push(i == j ? 10 : i == 2 && j == 5 ? 3 : i == 7 && j == 5 ? 4 : 0);
    matrix.push(std::move(row));
  }
  const Json line = Json::object().set("epoch", 1).set("step", 1).set("matrix", matrix);
  const std::vector<Json> lines = parse_tables(line.dump() + "\n");
  REQUIRE(lines.size() == 1);
  const Json& found = lines[0].at("matrix");
  CHECK(found.at("classes").items()[5].dump() == "[10.0, 17.0, 10.0]");
  CHECK(found.at("classes").items()[7].dump() == "[14.0, 10.0, 10.0]");
  CHECK(found.at("confusions").dump() == "[[7, 5, 4.0], [2, 5, 3.0]]");
}

TEST_CASE("a metric with two names is recognized as the same metric") {
  const auto computes = [](const std::string& loss, const std::string& metrics, int units) {
    Diagnostics diagnostics;
    const std::string yaml = fmt::format(R"(
model: {{inputs: {{x: [4]}}, layers: [{{dense: {{units: {}}}}}]}}
dataset: {{train: {{synthetic: {{samples: 8, target: {}}}}}}}
train: {{loss: {{{}: {{from_logits: true}}}}, optimizer: sgd, metrics: [{}]}}
)",
                                         units, units > 1 ? "{classes: 3}" : "{shape: [1]}", loss, metrics);
    const MetricFacts facts = MetricFacts::of(parse_yaml(yaml, "config.yaml", diagnostics));
    REQUIRE(facts.known);
    std::string name = metrics;
    if (const size_t at = name.find("name: "); at != std::string::npos) name = name.substr(at + 6, 3);
    return facts.computes.at(name);
  };
  const std::string classes = "sparse_categorical_crossentropy", yes = "binary_crossentropy";
  CHECK(computes(classes, "accuracy", 3) == computes(classes, "sparse_categorical_accuracy", 3));
  CHECK(computes(yes, "accuracy", 1) == computes(yes, "binary_accuracy", 1));
  CHECK(computes(yes, "auc", 1) == computes(yes, "{auc: {name: roc}}", 1));
  CHECK(computes(yes, "auc", 1) != computes(yes, "{auc: {curve: PR, name: roc}}", 1));
  CHECK(computes(classes, "accuracy", 3) != computes(classes, "{recall: {name: acc}}", 3));
  CHECK(computes(yes, "binary_accuracy", 1) != computes(classes, "accuracy", 3));
}
