#include "interop/torch/script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dtrain {

namespace {

constexpr std::string_view kImports = R"(import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent
)";

constexpr std::string_view kAveragePool = R"(

def average_pool(x, size, stride, sides):
    """Returns the mean of each window's elements, not counting padding."""
    pool = {3: F.avg_pool1d, 4: F.avg_pool2d, 5: F.avg_pool3d}[x.dim()]
    return pool(F.pad(x, sides), size, stride) / pool(F.pad(torch.ones_like(x[:1, :1]), sides), size, stride)
)";

constexpr std::string_view kFunctions = R"(

def load(path=HERE / WEIGHTS):
    """Returns the model with its weights, for inference."""
    model = Model()
    model.load_state_dict(load_file(path))
    return model.eval()


def check(tolerance=1e-4):
    """Compares the model's outputs with dtrain's."""
    probes = load_file(HERE / PROBES)
    with torch.no_grad():
        found = load()(*(probes["inputs." + name] for name in INPUTS))
    found = found if isinstance(found, tuple) else (found,)
    for name, values in zip(OUTPUTS, found):
        expected = probes["outputs." + name]
        difference = float((values - expected).abs().max()) / max(1.0, float(expected.abs().max()))
        assert difference <= tolerance, f"{name}: differs from dtrain's by {difference:.2g}"
        print(f"{name}: same as dtrain's within {difference:.2g}")


if __name__ == "__main__":
    check()
)";

/// Returns the text as a Python string literal.
std::string quoted(const std::string& text) {
  return Json(text).dump();
}

std::string names_in_python(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += quoted(name) + ", ";
  return fmt::format("({})", all.substr(0, names.size() > 1 ? all.size() - 2 : all.size() - 1));
}

/// Collects the buffers of the script's module.
struct Buffers {
  TorchBuilder& builder;
  std::vector<ScriptBuffer> all;

  /// Adds a buffer. Returns the expression with which forward() refers to it: "self.x_scale".
  std::string add(const std::string& name, const std::vector<double>& values, const Shape& sample) {
    all.push_back({builder.unique(name), shape_of_numbers(values, sample), narrowed(values)});
    return "self." + all.back().name;
  }
};

/// Returns the first lines of forward(). They compute the model's inputs from the arguments.
std::vector<std::string> input_lines(const ExportedModel& model, Buffers& buffers) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    const ExportedInput& input = model.inputs[i];
    const std::string& x = buffers.builder.input(i);
    if (!input.scale.empty())
      lines.push_back(fmt::format("{0} = ({0} - {1}) * {2}", x,
                                  buffers.add(x + "_center", input.center, input.given.shape),
                                  buffers.add(x + "_scale", input.scale, input.given.shape)));
    const Shape& shape = model.graph->spec({model.graph->inputs[i]}).shape;
    if (shape != input.given.shape)
      lines.push_back(
          fmt::format("{0} = {0}.reshape({0}.shape[0], {1})", x, fmt::join(shape.extents(), ", ")));
  }
  return lines;
}

/// Returns the expressions that forward() returns, one for each output.
std::vector<std::string> output_expressions(const ExportedModel& model, Buffers& buffers) {
  std::vector<std::string> expressions;
  for (size_t i = 0; i < model.outputs.size(); ++i) {
    const ExportedOutput& output = model.outputs[i];
    const Shape& shape = model.graph->spec(model.graph->outputs[i]).shape;
    std::string y = buffers.builder.output(i);
    if (output.finish == ExportedOutput::Finish::softmax) y = fmt::format("torch.softmax({}, -1)", y);
    if (output.finish == ExportedOutput::Finish::sigmoid) y = fmt::format("torch.sigmoid({})", y);
    if (!output.scale.empty())
      y = fmt::format("{} * {} + {}", y, buffers.add(output.name + "_scale", output.scale.scale, shape),
                      buffers.add(output.name + "_offset", output.scale.offset, shape));
    expressions.push_back(y);
  }
  return expressions;
}

std::string shape_in_words(const ExportedInput& input) {
  std::string axes = "batch";
  for (const int64_t extent : input.given.shape) axes += fmt::format(", {}", extent);
  return fmt::format("{} [{}]", input.given.name, axes);
}

}  // namespace

TorchScript torch_script(const ExportedModel& model, TorchBuilder& builder, const std::string& weights,
                         const std::string& probes) {
  Buffers buffers{builder, {}};
  std::vector<std::string> inputs, outputs, shapes;
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    inputs.push_back(model.inputs[i].given.name);
    shapes.push_back(shape_in_words(model.inputs[i]));
  }
  for (const ExportedOutput& output : model.outputs) outputs.push_back(output.name);
  const std::vector<std::string> before = input_lines(model, buffers);
  const std::vector<std::string> results = output_expressions(model, buffers);  // may add lines to `builder`

  std::string text = fmt::format("{}\n", kScriptHead);
  text +=
      "# load() creates the model. Running this file with `python` compares its outputs with dtrain's "
      "outputs.\n";
  text += kImports;
  text += fmt::format("WEIGHTS, PROBES = {}, {}\nINPUTS, OUTPUTS = {}, {}\n", quoted(weights), quoted(probes),
                      names_in_python(inputs), names_in_python(outputs));
  const bool averages =
      fmt::format("{}", fmt::join(builder.lines(), "\n")).find("average_pool(") != std::string::npos;
  if (averages) text += kAveragePool;
  text += "\n\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n";
  for (const std::string& line : builder.constructors()) text += fmt::format("        {}\n", line);
  for (const ScriptBuffer& buffer : buffers.all)
    text += fmt::format("        self.register_buffer(\"{}\", torch.zeros({}))\n", buffer.name,
                        fmt::join(buffer.shape.extents(), ", "));
  text += "\n    def forward(self";
  for (size_t i = 0; i < inputs.size(); ++i) text += ", " + builder.input(i);
  text += fmt::format("):\n        # {}\n", fmt::join(shapes, "; "));
  for (const std::string& line : before) text += fmt::format("        {}\n", line);
  for (const std::string& line : builder.lines()) text += fmt::format("        {}\n", line);
  text += fmt::format("        return {}\n", fmt::join(results, ", "));
  return {text + std::string(kFunctions), std::move(buffers.all)};
}

}  // namespace dtrain
