// An exported model of a graph with random weights.
#pragma once

#include <string>
#include <vector>

#include "interop/exported_model.h"
#include "nn/parameters.h"
#include "support/graphs.h"

namespace dtrain {

/// An exported model with everything that it refers to. Must not be copied.
struct TestExport {
  explicit TestExport(const std::string& yaml) : graph(test::graph_from(yaml)), layout(graph) {
    values.resize(static_cast<size_t>(layout.size()));
    initialize(graph, layout, 1, values.data());
    model.graph = &graph;
    model.name = "net";
    for (const TensorSpec& input : graph.input_specs()) model.inputs.push_back({input, {}, {}});
    for (const ValueRef output : graph.outputs)
      model.outputs.push_back({graph.layer_name(output.node), ExportedOutput::Finish::none, {}});
    model.values = [this](int node, size_t parameter) {
      const ParameterSlice& slice = layout.slice(node, static_cast<int>(parameter));
      return std::span<const float>(values.data() + slice.offset, static_cast<size_t>(slice.elements()));
    };
  }
  TestExport(const TestExport&) = delete;
  TestExport& operator=(const TestExport&) = delete;

  Graph graph;
  ParameterLayout layout;
  std::vector<float> values;
  ExportedModel model;
};

}  // namespace dtrain
