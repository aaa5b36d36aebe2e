#include "nn/pretrained.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/pattern.h"

namespace dtrain {

namespace {

int64_t stars(const std::string& pattern) {
  return std::count(pattern.begin(), pattern.end(), '*');
}

}  // namespace

std::string Renames::apply(const std::string& name) const {
  for (const auto& [from, to] : items) {
    if (!matches(from.text(), name)) continue;
    const size_t star = to.text().find('*');
    if (star == std::string::npos) return to.text();
    return fmt::format("{}{}{}", to.text().substr(0, star), matched_by_star(from.text(), name),
                       to.text().substr(star + 1));
  }
  return name;
}

bool Codec<Renames>::parse(const ConfigNode& node, const std::string& where, Renames& out,
                           Diagnostics& diagnostics) {
  if (!node.is_mapping())
    return report_unexpected(node, where, "a mapping from names in the file to names in this model",
                             diagnostics);
  out.items.clear();
  bool good = true;
  for (const auto& [from, to] : node.entries()) {
    if (!to.is_scalar() || to.text().empty()) {
      good = report_unexpected(to, where + "." + from.text(), "a name, or a pattern such as 'head/*'",
                               diagnostics);
    } else if (stars(from.text()) > 1 || stars(from.text()) != stars(to.text())) {
      diagnostics.error(
          from, fmt::format("{}: '{}' and '{}' must either both contain exactly one *, or both contain none",
                            where, from.text(), to.text()));
      good = false;
    }
    out.items.emplace_back(from, to);
  }
  return good;
}

ConfigNode Codec<Renames>::write(const Renames& value) {
  std::vector<ConfigNode::Entry> entries;
  for (const auto& [from, to] : value.items)
    entries.push_back({string_node(from.text()), string_node(to.text())});
  return ConfigNode::mapping(std::move(entries));
}

Json Codec<Renames>::schema() {
  return json_type("object").set("additionalProperties", json_type("string"));
}

const Schema<PretrainedWeights>& PretrainedWeights::schema() {
  static const auto kSchema =
      Schema<PretrainedWeights>(
          "Pretrained weights with which training starts. Every weight of the model must be in the file, "
          "with the same shape, unless `skip` lists the weight. Every weight of the file must be used, "
          "unless `unused` lists the weight.")
          .example("{from: pretrained.h5, rename: {\"base/*\": \"backbone/*\"}, skip: [\"head/*\"]}")
          .required(
              "from", &PretrainedWeights::from,
              "path of the weights: a run directory (its best checkpoint or, without a best checkpoint, its "
              "newest one), a checkpoint, the folder of an imported model, or a file with the extension "
              ".h5, .weights.h5, .keras or .safetensors")
          .optional("rename", &PretrainedWeights::rename,
                    "Mapping from names of weights in the file to names of weights in this model. Names may "
                    "be patterns with one *.")
          .optional(
              "skip", &PretrainedWeights::skip,
              "Patterns of weights of this model that are not loaded. These weights are initialized instead.")
          .optional("unused", &PretrainedWeights::unused,
                    "patterns of weights in the file that are not used");
  return kSchema;
}

}  // namespace dtrain
