#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/pattern.h"
#include "config/patterns.h"
#include "distribute/strategies/common.h"
#include "distribute/strategies/table.h"

namespace dtrain {

/// Layer names, or patterns of layer names, and the device of each, in the order of the configuration.
struct LayerPlaces {
  std::vector<std::pair<ConfigNode, WrittenDevice>> items;  // patterns are scalars
};

template <>
struct Codec<LayerPlaces> {
  static bool parse(const ConfigNode& node, const std::string& where, LayerPlaces& out,
                    Diagnostics& diagnostics) {
    if (!node.is_mapping())
      return report_unexpected(node, where, "a mapping from layers (or patterns like 'head/*') to devices",
                               diagnostics);
    out.items.clear();
    bool good = true;
    for (const auto& [pattern, place] : node.entries()) {
      WrittenDevice device;
      if (Codec<WrittenDevice>::parse(place, where + "." + pattern.text(), device, diagnostics))
        out.items.emplace_back(pattern, device);
      else
        good = false;
    }
    return good;
  }
  static ConfigNode write(const LayerPlaces& value) {
    std::vector<ConfigNode::Entry> entries;
    for (const auto& [pattern, device] : value.items)
      entries.emplace_back(string_node(pattern.text()), Codec<WrittenDevice>::write(device));
    return ConfigNode::mapping(std::move(entries));
  }
  static Json schema() {
    return json_type("object").set("additionalProperties", Codec<WrittenDevice>::schema());
  }
};

namespace {

struct PlacedOptions {
  LayerPlaces layers;
};

const Schema<PlacedOptions>& placed_schema() {
  static const auto schema =
      Schema<PlacedOptions>(
          "Model parallelism. Each layer is computed on the device that its own option `device` or a pattern "
          "in `layers` names. Any other layer is on the device of its first input. An input of the model is "
          "on the device of the first layer that reads it. Independent layers on different devices are "
          "computed at the same time.")
          .example("{layers: {dense: \"cpu:0\"}}")
          .optional("layers", &PlacedOptions::layers,
                    "mapping from layer names to devices, for example `{\"encoder/*\": cpu:0, head: cpu:1}`. "
                    "A name may be a pattern with `*`. If a layer has its own option `device`, that option "
                    "takes precedence");
  return schema;
}

/// Device of each node; nullopt if not specified.
using Places = std::vector<std::optional<DeviceId>>;

class Placed final : public Strategy {
 public:
  /// `where`: source location of the strategy's name.
  Placed(const PlacedOptions& options, Mark where) : options_(options), where_(std::move(where)) {}

  using Strategy::place;
  Placement place(const Workload& work, Diagnostics& diagnostics) const override {
    const Graph& graph = work.graph;
    const size_t before = diagnostics.count();
    check_devices(graph, diagnostics);
    if (graph.nodes.empty()) return diagnostics.count() == before ? of_patterns() : Placement();
    Patterns patterns;
    for (const auto& [pattern, device] : options_.layers.items) patterns.items.push_back(pattern);
    patterns.check_each_matches(layer_names(graph), "placed", "layer", diagnostics);
    Places places = said_places(graph, diagnostics);
    if (std::none_of(places.begin(), places.end(), [](const auto& place) { return place.has_value(); }) &&
        options_.layers.items.empty())
      diagnostics.error(
          where_,
          "placed: no layer has a device; give patterns, such as `placed: {layers: {\"encoder/*\": "
          "cpu:0}}`, or give layers a `device:` option");
    if (diagnostics.count() != before) return {};
    place_others(graph, places);
    return laid_out(places);
  }

  ConfigNode settled(const Graph& graph, const Placement& /*placement*/) const override {
    const auto has_device = [](const GraphNode& node) { return node.device.has_value(); };
    if (std::none_of(graph.nodes.begin(), graph.nodes.end(), has_device)) return {};
    Diagnostics ignored;
    const Places places = said_places(graph, ignored);
    PlacedOptions by_name;
    for (const int node : layer_nodes(graph))
      if (const auto& place = places[static_cast<size_t>(node)])
        by_name.layers.items.emplace_back(string_node(graph.nodes[static_cast<size_t>(node)].name),
                                          WrittenDevice{*place, {}});
    return resolved_kind("placed", where_, placed_schema().write(by_name));
  }

 private:
  void check_devices(const Graph& graph, Diagnostics& diagnostics) const {
    for (const auto& [pattern, device] : options_.layers.items) check_present(device, diagnostics);
    for (const GraphNode& node : graph.nodes)
      if (node.device && !node.is_activation_of_previous) check_present(*node.device, diagnostics);
  }

  /// Returns a placement for a model that failed to parse. It contains only the devices that the patterns
  /// name.
  Placement of_patterns() const {
    Placement placement;
    for (const auto& [pattern, device] : options_.layers.items) placement.replicas.push_back({device.id});
    return placement;
  }

  /// Returns the devices that are given by the layers' `device:` options and by patterns. If two patterns
  /// give different devices to a layer, reports an error, but only once for each pair of patterns.
  Places said_places(const Graph& graph, Diagnostics& diagnostics) const {
    Places places(graph.nodes.size());
    std::set<std::pair<size_t, size_t>> reported;
    for (const int number : layer_nodes(graph)) {
      const GraphNode& node = graph.nodes[static_cast<size_t>(number)];
      std::optional<DeviceId>& place = places[static_cast<size_t>(number)];
      if (node.device) {
        place = node.device->id;
        continue;
      }
      const auto& items = options_.layers.items;
      size_t first = items.size();
      for (size_t i = 0; i < items.size(); ++i) {
        const auto& [pattern, device] = items[i];
        if (!matches(pattern.text(), node.name)) continue;
        if (!place) {
          place = device.id;
          first = i;
        } else if (*place != device.id && reported.emplace(first, i).second) {
          diagnostics.error(pattern,
                            fmt::format("placed: '{2}' puts the layer '{0}' on {1}, but '{4}' puts it on "
                                        "{3}; give the layer its own `device:`, which takes precedence",
                                        node.name, place->str(), items[first].first.text(), device.id.str(),
                                        pattern.text()));
        }
      }
    }
    return places;
  }

  /// Chooses devices for the nodes that have none. A model input gets the device of its first reader. Any
  /// other node gets the device of its first input. If the first input has no device, the node gets the
  /// device of its first reader. All remaining nodes get the device of the first node that has one.
  static void place_others(const Graph& graph, Places& places) {
    const std::vector<std::optional<int>> readers = first_readers(graph);
    const auto follow_reader = [&](size_t i) {
      if (!places[i] && readers[i]) places[i] = places[static_cast<size_t>(*readers[i])];
    };
    for (const int input : graph.inputs) follow_reader(static_cast<size_t>(input));
    for (size_t i = 0; i < places.size(); ++i)
      if (const auto& inputs = graph.nodes[i].inputs; !places[i] && !inputs.empty())
        places[i] = places[static_cast<size_t>(inputs[0].node)];
    for (size_t i = places.size(); i-- > 0;) follow_reader(i);
    const auto known = std::find_if(places.begin(), places.end(), [](const auto& one) { return one; });
    const std::optional<DeviceId> first = *known;
    for (std::optional<DeviceId>& place : places)
      if (!place) place = first;
  }

  /// Assigns slot numbers to the devices, in the order in which the nodes first use them, and returns the
  /// placement.
  static Placement laid_out(const Places& places) {
    std::vector<DeviceId> devices;
    Placement placement;
    for (const std::optional<DeviceId>& place : places) {
      const auto found = std::find(devices.begin(), devices.end(), *place);
      placement.slots.push_back(static_cast<int>(found - devices.begin()));
      if (found == devices.end()) devices.push_back(*place);
    }
    if (devices.size() == 1) placement.slots.clear();
    placement.replicas = {std::move(devices)};
    return placement;
  }

  PlacedOptions options_;
  Mark where_;
};

}  // namespace

void add_placed(Registry<Strategy>& table) {
  table.add_with("placed", placed_schema(), [](const PlacedOptions& options, const ConfigNode& node) {
    return std::make_shared<const Placed>(options, node.mark());
  });
}

}  // namespace dtrain
