#include "interop/torch/export.h"

#include <cctype>
#include <deque>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files/new_file.h"
#include "base/location.h"
#include "checkpoint/safetensors.h"
#include "config/schema.h"
#include "interop/permuted.h"
#include "interop/torch/builder.h"
#include "interop/torch/script.h"

namespace dtrain {

namespace {

namespace fs = std::filesystem;

/// The arrays of a file. `floats` owns the memory of arrays that were converted.
struct Arrays {
  std::vector<ArrayRef> all;
  std::deque<std::vector<float>> floats;
  std::deque<std::vector<int32_t>> integers;

  void add(const std::string& name, const Shape& shape, std::vector<float> values) {
    all.push_back({name, shape, DType::float32, floats.emplace_back(std::move(values)).data()});
  }
};

using Metadata = std::vector<std::pair<std::string, std::string>>;

Metadata metadata_of(const ExportedModel& model, TensorLayout layout) {
  Metadata metadata = {{"format", layout == TensorLayout::pytorch ? "pt" : "keras"},
                       {"producer", "dtrain"},
                       {"model", to_json(write_model(*model.graph)).dump()}};
  for (const auto& [key, value] : model.metadata.entries())
    metadata.emplace_back(key, value.is_string() ? value.as_string() : value.dump());
  return metadata;
}

void write_arrays(const Arrays& arrays, const Metadata& metadata, const std::string& path) {
  NewFile file(path);
  write_safetensors(file, arrays.all, metadata);
  file.finish();
}

Arrays keras_arrays(const ExportedModel& model) {
  Arrays arrays;
  for (size_t i = 0; i < model.graph->nodes.size(); ++i) {
    const GraphNode& node = model.graph->nodes[i];
    if (node.shared_with >= 0) continue;
    for (size_t k = 0; k < node.parameters.size(); ++k)
      arrays.all.push_back({node.name + "/" + node.parameters[k].name, node.parameters[k].shape,
                            DType::float32, model.values(static_cast<int>(i), k).data()});
  }
  return arrays;
}

Arrays torch_arrays(const ExportedModel& model, const TorchBuilder& builder, const TorchScript& script) {
  Arrays arrays;
  for (const TorchWeight& weight : builder.weights()) {
    if (weight.parameter < 0) {
      arrays.add(weight.key(), weight.shape,
                 std::vector<float>(static_cast<size_t>(weight.shape.elements()), weight.value));
      continue;
    }
    const auto index = static_cast<size_t>(weight.parameter);
    const std::span<const float> values = model.values(weight.node, index);
    const Shape& shape = model.graph->nodes[static_cast<size_t>(weight.node)].parameters[index].shape;
    if (weight.axes.empty())
      arrays.all.push_back({weight.key(), weight.shape, DType::float32, values.data()});
    else
      arrays.add(weight.key(), weight.shape, permuted(values, shape, weight.axes));
  }
  for (const ScriptBuffer& buffer : script.buffers) arrays.add(buffer.name, buffer.shape, buffer.values);
  return arrays;
}

Arrays probe_arrays(const ExportedModel& model) {
  Arrays arrays;
  const ExportedProbes& probes = model.probes;
  for (size_t i = 0; i < probes.inputs.size(); ++i) {
    const TensorSpec& spec = model.inputs[i].given;
    const std::vector<float>& values = probes.inputs[i];
    const std::string name = "inputs." + spec.name;
    const Shape shape = spec.shape.prepended(probes.samples);
    if (spec.dtype == DType::int32)
      arrays.all.push_back(
          {name, shape, DType::int32, arrays.integers.emplace_back(values.begin(), values.end()).data()});
    else
      arrays.all.push_back({name, shape, DType::float32, values.data()});
  }
  for (size_t i = 0; i < probes.outputs.size(); ++i)
    arrays.all.push_back({"outputs." + model.outputs[i].name,
                          model.graph->spec(model.graph->outputs[i]).shape.prepended(probes.samples),
                          DType::float32, probes.outputs[i].data()});
  return arrays;
}

/// Converts a file's base name to a valid Python module name: replaces invalid characters by '_'.
std::string python_name(std::string name) {
  for (char& c : name)
    if (static_cast<unsigned char>(c) < 0x80 && std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) != 0 ? "_" + name : name;
}

/// Throws UserError if `path` exists but is not a script that dtrain wrote.
void check_script(const std::string& path) {
  if (fs::exists(fs::symlink_status(path)) && first_bytes(path, kScriptHead.size()) != kScriptHead)
    throw UserError(fmt::format(
        "{}: the file exists and was not written by dtrain; choose another path with --output", path));
}

/// Throws UserError if two outputs have the same name, because the file cannot contain two arrays with the
/// same name.
void check_names(const ExportedModel& model) {
  std::set<std::string> names;
  for (const ExportedOutput& output : model.outputs)
    if (!names.insert(output.name).second)
      throw UserError(
          fmt::format("the output '{}' is listed twice; list each layer once in `outputs`", output.name));
}

}  // namespace

std::vector<std::string> export_safetensors(const ExportedModel& model, TensorLayout layout,
                                            const std::string& path) {
  Metadata metadata = metadata_of(model, layout);
  metadata.emplace_back("layout", layout == TensorLayout::pytorch ? "pytorch" : "keras");
  if (layout == TensorLayout::keras) {
    write_arrays(keras_arrays(model), metadata, path);
    return {path};
  }
  check_names(model);
  TorchBuilder builder(*model.graph);
  const fs::path stem = fs::path(path).replace_extension();
  const std::string script_path = stem.parent_path() / (python_name(stem.filename()) + "_load.py");
  const std::string probes_path = stem.string() + "_probes.safetensors";
  check_script(script_path);
  const TorchScript script =
      torch_script(model, builder, fs::path(path).filename(), fs::path(probes_path).filename());
  Json layers = Json::object();
  for (const auto& [module, layer] : builder.layers()) layers.set(module, layer);
  metadata.emplace_back("layers", layers.dump());
  write_arrays(probe_arrays(model), {{"format", "pt"}}, probes_path);
  NewFile file(script_path);
  file.append(script.text.data(), script.text.size());
  file.finish();
  write_arrays(torch_arrays(model, builder, script), metadata, path);
  return {path, script_path, probes_path};
}

}  // namespace dtrain
