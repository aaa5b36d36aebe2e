// Conversion of a graph's model to Keras's format.
#pragma once

#include <string>

#include <doctest/doctest.h>

#include "interop/keras/export/model_config.h"
#include "support/graphs.h"

namespace dtrain::test {

/// Returns the Keras config of a graph's model.
inline Json model_config(const Graph& graph, const std::string& name = "net") {
  const Json model = keras_model_config(graph, name, keras_layers(graph));
  CHECK(model.at("class_name").as_string() == "Functional");
  return model.at("config");
}

}  // namespace dtrain::test
