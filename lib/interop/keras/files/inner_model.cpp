#include "interop/keras/files/inner_model.h"

#include <utility>

namespace dtrain {

namespace {

Json end_of(const std::string& layer) {
  return Json::array().push(layer).push(0).push(0);
}

Json entry_of(const std::string& module, Json registered_name, const std::string& class_name,
              const std::string& name, Json config, std::vector<Json> arguments) {
  Json inbound = Json::array();
  if (!arguments.empty()) {
    Json all = Json::array();
    for (Json& argument : arguments) all.push(std::move(argument));
    inbound.push(Json::object().set("args", std::move(all)).set("kwargs", Json::object()));
  }
  return Json::object()
      .set("module", module)
      .set("registered_name", std::move(registered_name))
      .set("class_name", class_name)
      .set("config", std::move(config))
      .set("name", name)
      .set("inbound_nodes", std::move(inbound));
}

}  // namespace

Json keras_batch_shape(const Shape& sample) {
  Json shape = Json::array();
  shape.push(Json());
  for (const int64_t extent : sample) shape.push(extent);
  return shape;
}

Json keras_inner_tensor(const std::string& layer, const Shape& sample) {
  return Json::object()
      .set("class_name", "__keras_tensor__")
      .set("config", Json::object()
                         .set("shape", keras_batch_shape(sample))
                         .set("dtype", "float32")
                         .set("keras_history", end_of(layer)));
}

Json keras_inner_layer_entry(const std::string& class_name, const std::string& name, Json config,
                             std::vector<Json> arguments, const char* dtype) {
  config.set("name", name).set("dtype", dtype);
  return entry_of("keras.layers", Json(), class_name, name, std::move(config), std::move(arguments));
}

Json keras_inner_operation(const std::string& module, const std::string& class_name, const std::string& name,
                           Json config, std::vector<Json> arguments) {
  config.set("name", name);
  return entry_of(module, class_name, class_name, name, std::move(config), std::move(arguments));
}

Json keras_inner_model(const Json& outer, Json layers, const std::vector<std::string>& inputs,
                       const std::string& output) {
  Json ends = Json::array();
  for (const std::string& input : inputs) ends.push(end_of(input));
  return Json::object()
      .set("name", outer.at("name"))
      .set("trainable", outer.at("trainable"))
      .set("layers", std::move(layers))
      .set("input_layers", inputs.size() == 1 ? end_of(inputs[0]) : std::move(ends))
      .set("output_layers", end_of(output));
}

}  // namespace dtrain
