// dtrain diff: compares two checkpoints, runs, model files or step logs.
#include <memory>
#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "cli/console.h"
#include "cli/options.h"
#include "commands.h"
#include "print/comparison_report.h"
#include "report/compared_model.h"
#include "report/model_comparison.h"
#include "report/step_log_comparison.h"

namespace dtrain {

namespace {

struct DiffOptions {
  OutputOptions output;
  std::string a, b;
  double tolerance = 0;
  bool arrays_only = false;
};

ComparisonTitles titles_of(const DiffOptions& options) {
  return {options.a, options.b, options.tolerance};
}

/// Compares step logs. Returns true if they are equal.
bool diff_step_logs(const DiffOptions& options) {
  const StepLogComparison found = compare_step_logs(options.a, options.b, options.tolerance);
  if (options.output.json) print_json(comparison_json(found));
  if (options.output.text()) print_text(comparison_text(found, titles_of(options)));
  return found.is_equal();
}

/// Compares models. Returns true if they are equal.
bool diff_models(const DiffOptions& options) {
  ComparedModel a = load_compared_model(options.a, print_warning),
                b = load_compared_model(options.b, print_warning);
  const auto run_a = match_layout(a, b), run_b = match_layout(b, a);
  match_names(a, b);
  match_names(b, a);
  const ModelComparison found = compare_models(a, b, options.tolerance, options.arrays_only);
  if (options.output.json) print_json(comparison_json(found, a, b));
  if (options.output.text()) print_text(comparison_text(found, titles_of(options)));
  return found.is_equal();
}

void diff(const DiffOptions& options) {
  if (!(options.tolerance >= 0))
    throw UserError(fmt::format("--tolerance: expected a number of at least 0, found {}", options.tolerance));
  const bool logs[] = {is_step_log(options.a), is_step_log(options.b)};
  if (logs[0] != logs[1])
    throw UserError(fmt::format("{}: this is a step log, but {} is not; compare two step logs, or two models",
                                logs[0] ? options.a : options.b, logs[0] ? options.b : options.a));
  if (!(logs[0] ? diff_step_logs(options) : diff_models(options))) throw Unequal();
}

}  // namespace

void add_diff(CommandLine& line) {
  Command command = line.add_command("diff", "Compare two checkpoints, runs, model files or step logs");
  const auto options = std::make_shared<DiffOptions>();
  constexpr const char* kSides =
      "The first side of the comparison: a run (its best checkpoint if it has one, otherwise its newest), a "
      "checkpoint, an imported model, a model file (.keras, .h5, .safetensors or .onnx; only its weights are "
      "compared), or a step log (from fit --step-log)";
  command.add_option("A", options->a, kSides).required();
  command.add_option("B", options->b, "The run, checkpoint, model file or step log to compare with A")
      .required();
  command
      .add_option("--tolerance", options->tolerance,
                  "Consider two numbers a and b equal if |a - b| <= TOLERANCE * max(1, |b|). With the "
                  "default 0, all bits must be identical")
      .type_name("TOLERANCE");
  command.add_flag("--arrays", options->arrays_only, "Compare only weights and optimizer state");
  add_output_options(command, options->output);
  command.callback([options] { diff(*options); });
}

}  // namespace dtrain
