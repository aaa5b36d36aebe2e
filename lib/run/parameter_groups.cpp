#include "run/parameter_groups.h"

#include <algorithm>

namespace dtrain {

const Schema<ParameterGroup>& ParameterGroup::schema() {
  static const auto kSchema =
      Schema<ParameterGroup>("A group of weights with its own training options.")
          .example("{weights: [\"*/bias\", \"*/gamma\", \"*/beta\"], weight_decay: 0}")
          .required("weights", &ParameterGroup::weights,
                    "names of weights, such as dense_1/kernel, or patterns, such as '*/bias'. If several "
                    "groups match a weight, only the first one applies")
          .optional("learning_rate_factor", &ParameterGroup::learning_rate_factor,
                    "factor by which the learning rate is multiplied for these weights", at_least(0.0))
          .optional("weight_decay", &ParameterGroup::weight_decay,
                    "weight decay for these weights; it overrides the weight decay of the optimizer",
                    at_least<std::optional<double>>(0.0))
          .optional("trainable", &ParameterGroup::trainable,
                    "whether these weights are trained. Weights that are not trained remain unchanged, and "
                    "have no optimizer state")
          .rule([](const ParameterGroup& group, const ConfigNode& node, Diagnostics& diagnostics) {
            if (!group.trainable && (group.learning_rate_factor != 1 || group.weight_decay))
              diagnostics.error(node,
                                "weights that are not trained (trainable: false) cannot have a "
                                "learning_rate_factor or a weight_decay");
          });
  return kSchema;
}

void apply_groups(const std::vector<ParameterGroup>& groups, Graph& graph, Diagnostics& diagnostics) {
  std::vector<std::string> names;
  for (GraphNode& node : graph.nodes) {
    if (node.shared_with >= 0) {  // shared parameters have the options of their owner
      node.parameters = graph.nodes[static_cast<size_t>(node.shared_with)].parameters;
      continue;
    }
    if (!node.trainable) continue;
    for (ParameterSpec& parameter : node.parameters) {
      if (parameter.moving_average) continue;
      names.push_back(node.name + "/" + parameter.name);
      const auto group = std::find_if(groups.begin(), groups.end(), [&](const ParameterGroup& one) {
        return one.weights.match(names.back());
      });
      if (group == groups.end()) continue;
      parameter.training = {group->trainable, static_cast<float>(group->learning_rate_factor), {}};
      if (group->weight_decay) parameter.training.weight_decay = static_cast<float>(*group->weight_decay);
    }
  }
  for (const ParameterGroup& group : groups)
    group.weights.check_each_matches(names, "groups", "trained weight", diagnostics);
}

}  // namespace dtrain
