#include "interop/weight_file.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "base/formats/protobuf.h"
#include "base/json.h"
#include "checkpoint/foreign_file.h"
#include "checkpoint/safetensors.h"
#include "interop/keras/files/open_file.h"
#include "interop/keras/files/weight_names.h"
#include "interop/onnx/export.h"
#include "interop/onnx/read_model.h"
#include "interop/permuted.h"
#include "interop/torch/builder.h"

namespace dtrain {

namespace {

/// Returns true if a safetensors file has PyTorch's layout. If the file has no metadata about its layout,
/// names with slashes indicate dtrain's layout and names without slashes indicate PyTorch's layout.
bool is_torch_layout(const SafetensorsFile& file) {
  if (const auto layout = file.metadata.find("layout"); layout != file.metadata.end())
    return layout->second != "keras";
  return std::any_of(file.arrays.begin(), file.arrays.end(),
                     [](const SafetensorsArray& array) { return array.name.find('/') == std::string::npos; });
}

/// Returns a mapping from the names of PyTorch modules to the names of dtrain layers. Returns nullopt if the
/// file contains no such mapping because dtrain did not write it.
std::optional<Json> layers_of_modules(const SafetensorsFile& file, const std::string& path) {
  const auto written = file.metadata.find("layers");
  if (written == file.metadata.end()) return std::nullopt;
  try {
    Json layers = Json::parse(written->second);
    for (const auto& [module, layer] : layers.entries()) static_cast<void>(layer.as_string());
    return layers;
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}, metadata 'layers': {}", path, error.what()));
  }
}

/// Replaces the name of a PyTorch module in the name of an array by the name of its layer:
/// "block_conv.weight" becomes "block/conv.weight". Modules may be nested. Returns nullopt if the array does
/// not belong to a module.
std::optional<std::string> name_in_layer(const Json& layers, const std::string& name) {
  for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1))
    if (const Json* layer = layers.find(name.substr(0, dot))) return layer->as_string() + name.substr(dot);
  return std::nullopt;
}

}  // namespace

WeightFile WeightFile::load(const std::string& path) {
  if (path.ends_with(".safetensors") || begins_as_safetensors(path)) return of_safetensors(path);
  if (begins_as_hdf5(path) || is_keras_archive(path)) return of_keras(path);
  if (is_onnx_file(path)) return of_onnx(path);
  return of_checkpoint(path);
}

void WeightFile::add(std::string name, const Shape& shape, std::vector<float> values) {
  weights_.push_back(
      {std::move(name), shape, DType::float32, arrays_.emplace_back(std::move(values)).data()});
}

void WeightFile::add_other(const std::string& name, const Shape& shape, std::string values) {
  weights_.push_back({name, shape, DType::float32, nullptr});
  others_.emplace(name, std::move(values));
}

std::string_view WeightFile::other_values(const std::string& name) const {
  const auto found = others_.find(name);
  return found == others_.end() ? std::string_view() : found->second;
}

WeightFile WeightFile::of_model(const ExportedModel& model, WeightLayout layout) {
  WeightFile file;
  file.layout_ = layout;
  if (layout == WeightLayout::onnx) {
    for (OnnxTensor& tensor : onnx_model(model, {}).initializers)
      if (tensor.integers.empty()) {
        file.add(tensor.name, tensor.shape, std::move(tensor.floats));
      } else {
        std::string values = "int64";
        for (const int64_t number : tensor.integers) values += little_endian(static_cast<uint64_t>(number));
        file.add_other(tensor.name, tensor.shape, std::move(values));
      }
    return file;
  }
  if (layout == WeightLayout::torch) {
    for (const TorchWeight& weight : torch_weights(*model.graph)) {
      const GraphNode& node = model.graph->nodes[static_cast<size_t>(weight.node)];
      std::string name = node.name + "." + weight.name;
      name[name.rfind('.')] = '/';
      if (weight.parameter < 0) {
        const auto elements = static_cast<size_t>(weight.shape.elements());
        file.add(std::move(name), weight.shape, std::vector<float>(elements, weight.value));
        continue;
      }
      const auto index = static_cast<size_t>(weight.parameter);
      const std::span<const float> values = model.values(weight.node, index);
      file.add(std::move(name), weight.shape,
               weight.axes.empty() ? std::vector<float>(values.begin(), values.end())
                                   : permuted(values, node.parameters[index].shape, weight.axes));
    }
    return file;
  }
  for (size_t i = 0; i < model.graph->nodes.size(); ++i) {
    const GraphNode& node = model.graph->nodes[i];
    for (size_t k = 0; k < node.parameters.size() && node.shared_with < 0; ++k)
      file.weights_.push_back({node.name + "/" + node.parameters[k].name, node.parameters[k].shape,
                               DType::float32, model.values(static_cast<int>(i), k).data()});
  }
  return file;
}

WeightFile WeightFile::of_checkpoint(const std::string& path) {
  WeightFile file;
  file.checkpoint_ = std::make_shared<const Checkpoint>(Checkpoint::load(path));
  for (const LayerWeights& layer : file.checkpoint_->content().layers)
    for (ArrayRef weight : layer.weights) {
      weight.name = layer.layer + "/" + weight.name;
      file.weights_.push_back(std::move(weight));
    }
  return file;
}

WeightFile WeightFile::of_safetensors(const std::string& path) {
  SafetensorsFile read = SafetensorsFile::load(path);
  WeightFile file;
  const bool is_of_torch = is_torch_layout(read);
  if (is_of_torch) file.layout_ = WeightLayout::torch;
  const std::optional<Json> layers = layers_of_modules(read, path);
  for (SafetensorsArray& array : read.arrays) {
    std::string name = array.name;
    if (is_of_torch) {
      if (layers) {  // dtrain wrote the file, and the metadata tells which arrays are weights of layers
        const std::optional<std::string> of_layer = name_in_layer(*layers, name);
        if (!of_layer) continue;
        name = *of_layer;
      }
      if (const size_t dot = name.rfind('.'); dot != std::string::npos) name[dot] = '/';
    }
    if (array.values) {
      file.add(name, array.shape, *std::move(array.values));
    } else {
      file.add_other(name, array.shape, std::move(array.other));
    }
  }
  return file;
}

WeightFile WeightFile::of_onnx(const std::string& path) {
  WeightFile file;
  file.layout_ = WeightLayout::onnx;
  for (OnnxInitializer& array : read_onnx(path).initializers)
    if (array.values) {
      file.add(array.name, array.shape, *std::move(array.values));
    } else {
      file.add_other(array.name, array.shape, std::move(array.other));
    }
  return file;
}

WeightFile WeightFile::of_keras(const std::string& path) {
  WeightFile file;
  const OpenKerasFile opened(path);
  std::vector<KerasWeightGroup> groups = read_keras_weights(opened).groups;
  const auto names = names_of_weights(groups, opened.layout(), opened.facts().model_config);
  for (size_t k = 0; k < groups.size(); ++k) {
    for (size_t i = 0; i < groups[k].weights.size(); ++i) {
      KerasWeight& read = groups[k].weights[i];
      ArrayRef weight{names[k][i], read.shape, DType::float32, nullptr};
      if (read.values) weight.data = file.shared_.emplace_back(std::move(read.values)).get();
      file.weights_.push_back(std::move(weight));
    }
  }
  return file;
}

}  // namespace dtrain
