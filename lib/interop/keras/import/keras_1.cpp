#include "interop/keras/import/keras_1.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "interop/keras/files/json.h"

namespace dtrain {

namespace {

using NewNames = std::map<std::string, std::string, std::less<>>;

std::string renamed(const NewNames& names, const std::string& name) {
  const auto found = names.find(name);
  return found == names.end() ? name : found->second;
}

std::string keras_2_class(const std::string& name) {
  static const NewNames kClasses{
      {"AtrousConvolution1D", "Conv1D"},
      {"AtrousConvolution2D", "Conv2D"},
      {"Convolution1D", "Conv1D"},
      {"Convolution2D", "Conv2D"},
      {"Convolution3D", "Conv3D"},
      {"Deconvolution2D", "Conv2DTranspose"},
      {"SeparableConvolution2D", "SeparableConv2D"},
  };
  return renamed(kClasses, name);
}

/// Returns the Keras 2 class that replaces a Merge layer with this mode; "" if there is none.
std::string class_of_merge(const std::string& mode) {
  static const NewNames kModes{
      {"ave", "Average"}, {"concat", "Concatenate"}, {"max", "Maximum"}, {"mul", "Multiply"}, {"sum", "Add"}};
  const auto found = kModes.find(mode);
  return found == kModes.end() ? "" : found->second;
}

std::string keras_2_option(const std::string& class_name, const std::string& key) {
  static const NewNames kOptions{
      {"W_constraint", "kernel_constraint"},
      {"W_regularizer", "kernel_regularizer"},
      {"atrous_rate", "dilation_rate"},
      {"b_constraint", "bias_constraint"},
      {"b_regularizer", "bias_regularizer"},
      {"bias", "use_bias"},
      {"border_mode", "padding"},
      {"dim_ordering", "data_format"},
      {"filter_length", "kernel_size"},
      {"init", "kernel_initializer"},
      {"input_dtype", "dtype"},
      {"length", "size"},
      {"nb_filter", "filters"},
      {"output_dim", "units"},
      {"p", "rate"},
      {"pool_length", "pool_size"},
      {"stride", "strides"},
      {"subsample", "strides"},
      {"subsample_length", "strides"},
  };
  static const NewNames kOfEmbedding{{"W_constraint", "embeddings_constraint"},
                                     {"W_regularizer", "embeddings_regularizer"},
                                     {"init", "embeddings_initializer"},
                                     {"input_dtype", "dtype"}};
  if (class_name == "PReLU" && key == "init") return "alpha_initializer";
  return renamed(class_name == "Embedding" ? kOfEmbedding : kOptions, key);
}

Json keras_2_value(const std::string& class_name, const std::string& key, const Json& value) {
  static const NewNames kInitializers{
      {"normal", "random_normal"}, {"one", "ones"}, {"uniform", "random_uniform"}, {"zero", "zeros"}};
  if (key == "init" && value.is_string()) return renamed(kInitializers, value.as_string());
  if (key == "dim_ordering" && value.is_string())
    return value.as_string() == "th" ? "channels_first" : "channels_last";
  if (key == "padding" && class_name == "ZeroPadding2D" && value.is_array() && value.items().size() == 4) {
    const Json::Array& sides = value.items();
    return Json::array()
        .push(Json::array().push(sides[0]).push(sides[1]))
        .push(Json::array().push(sides[2]).push(sides[3]));
  }
  return value;
}

/// Returns true for options that Keras 2 does not need, so that they can be left out.
bool is_dropped(const std::string& class_name, const std::string& key, const Json& value) {
  const bool is_zero = value.is_number() && value.as_double() == 0;
  if (class_name == "BatchNormalization") return key == "mode" && is_zero;
  if (class_name == "Conv2DTranspose" && key == "output_shape") return true;
  if (class_name == "Embedding") return key == "input_length" || (key == "dropout" && is_zero);
  return key == "input_dim" || key == "input_length" || key == "nb_row" || key == "nb_col";
}

/// Converts the layers of one model, and of the models within it, to Keras 2's names.
class Renamer {
 public:
  explicit Renamer(const Json& model) : data_format_(find_data_format(model)) {}

  Json model(const Json& written) const {
    const Json* config = value_at(written, "config");
    if (!config) return written;
    Json result = written;
    if (config->is_array()) {
      result.set("config", layers(*config));
    } else if (const Json* list = value_at(*config, "layers"); list && list->is_array()) {
      Json changed = *config;
      result.set("config", changed.set("layers", layers(*list)));
    }
    return result;
  }

 private:
  /// Returns the data format of the first layer that specifies one; "" if no layer does. In Keras 1, padding,
  /// cropping and upsampling layers need not specify a data format. Such a layer gets the data format that
  /// this function returns.
  static std::string find_data_format(const Json& model) {
    const Json* config = value_at(model, "config");
    const Json* list = config && config->is_array() ? config : config ? value_at(*config, "layers") : nullptr;
    if (!list || !list->is_array()) return "";
    for (const Json& layer : list->items()) {
      const Json* options = value_at(layer, "config");
      const std::string ordering = options ? text_at(*options, "dim_ordering") : "";
      if (!ordering.empty()) return ordering == "th" ? "channels_first" : "channels_last";
      if (std::string inner = find_data_format(layer); !inner.empty()) return inner;
    }
    return "";
  }

  Json layers(const Json& list) const {
    Json result = Json::array();
    for (const Json& one : list.items()) result.push(layer(one));
    return result;
  }

  Json layer(const Json& written) const {
    const Json* config = value_at(written, "config");
    if (!config || config->is_array() || value_at(*config, "layers")) return model(written);
    const std::string class_name = keras_2_class(text_at(written, "class_name"));
    Json result = written;
    if (class_name == "Merge") {
      const std::string merge = class_of_merge(text_at(*config, "mode"));
      return merge.empty() ? written : result.set("class_name", merge).set("config", merged(*config));
    }
    return result.set("class_name", class_name).set("config", options(class_name, *config));
  }

  static Json merged(const Json& config) {
    Json result = Json::object().set("name", text_at(config, "name"));
    const Json* axis = value_at(config, "concat_axis");
    if (axis && text_at(config, "mode") == "concat") result.set("axis", *axis);
    return result;
  }

  Json options(const std::string& class_name, const Json& config) const {
    Json result = Json::object();
    if (!config.is_object()) return result;
    for (const auto& [key, value] : config.entries())
      if (!is_dropped(class_name, key, value))
        result.set(keras_2_option(class_name, key), keras_2_value(class_name, key, value));
    const Json *rows = value_at(config, "nb_row"), *columns = value_at(config, "nb_col");
    if (rows && columns) result.set("kernel_size", Json::array().push(*rows).push(*columns));
    constexpr std::array<std::string_view, 3> kWithoutFormat{"Cropping2D", "UpSampling2D", "ZeroPadding2D"};
    const bool lacks_format = std::count(kWithoutFormat.begin(), kWithoutFormat.end(), class_name) != 0;
    if (lacks_format && !data_format_.empty() && !result.find("data_format"))
      result.set("data_format", data_format_);
    return result;
  }

  std::string data_format_;
};

/// Reverses the order of an array's elements along its first `axes` axes.
KerasWeight flipped(const KerasWeight& kernel, size_t axes) {
  int64_t windows = 1;
  for (size_t i = 0; i < axes; ++i) windows *= kernel.shape[i];
  const int64_t each = windows ? kernel.shape.elements() / windows : 0;
  const auto moved = std::make_shared<std::vector<float>>();
  moved->reserve(static_cast<size_t>(kernel.shape.elements()));
  for (int64_t window = windows; window-- > 0;)
    moved->insert(moved->end(), kernel.values.get() + window * each,
                  kernel.values.get() + (window + 1) * each);
  KerasWeight result = kernel;
  result.values = {moved, moved->data()};
  return result;
}

KerasWeight with_keras_2_axes(const KerasModelLayer& layer, const KerasWeight& kernel) {
  if (kernel.shape.rank() != 4) return kernel;
  const bool is_first = text_at(layer.config, "data_format") == "channels_first";
  if (layer.class_name == "Conv2D") return is_first ? with_axes(kernel, {2, 3, 1, 0}) : kernel;
  if (layer.class_name == "Conv2DTranspose")
    return with_axes(kernel, is_first ? std::vector<int64_t>{2, 3, 0, 1} : std::vector<int64_t>{0, 1, 3, 2});
  // A Conv1D's kernel has the shape [length, 1, channels, filters]. Before Keras 1.2, the shape was [filters,
  // channels, length, 1].
  const Json* filters = value_at(layer.config, "filters");
  const bool is_recent =
      kernel.shape[1] == 1 && filters && filters->is_int() && filters->as_int() == kernel.shape[3];
  KerasWeight result = is_recent ? kernel : with_axes(kernel, {2, 3, 1, 0});
  if (result.shape[1] == 1) result.shape = Shape{result.shape[0], result.shape[2], result.shape[3]};
  return result;
}

}  // namespace

Json with_keras_2_names(const Json& model_config) {
  return Renamer(model_config).model(model_config);
}

KerasWeight restored_kernel(const KerasModelLayer& layer, const KerasWeight& kernel,
                            const KernelLayout& layout) {
  constexpr std::array<std::string_view, 4> kConvolutions{"Conv1D", "Conv2D", "Conv3D", "Conv2DTranspose"};
  if (std::count(kConvolutions.begin(), kConvolutions.end(), layer.class_name) == 0 || !kernel.values)
    return kernel;
  const KerasWeight moved = layout.is_keras_1 ? with_keras_2_axes(layer, kernel) : kernel;
  const size_t window = layer.class_name == "Conv1D" ? 1 : layer.class_name == "Conv3D" ? 3 : 2;
  return layout.is_flipped && moved.shape.rank() == window + 2 ? flipped(moved, window) : moved;
}

}  // namespace dtrain
