#include "interop/keras/import/repeated_layers.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace dtrain {

namespace {

constexpr size_t kLongestBody = 200;  // maximum number of layers in a block
// a block is used only if at least this many layers then need not be written out
constexpr size_t kFewestSaved = 6;

}  // namespace

RepeatedLayers::RepeatedLayers(const ConfigNode& model) {
  std::map<std::string, int> numbers;
  int input = 0;
  for (const auto& [name, shape] : model.find("inputs")->entries()) numbers[name.text()] = -(++input);
  int above = input == 1 ? -1 : 0;
  for (const ConfigNode& written : model.find("layers")->items()) {
    const auto& [kind, options] = written.entries().front();
    constexpr std::string_view kKeys[] = {"name", "inputs"};
    FlatLayer layer{kind.text(), options.find("name")->text(), options.without(kKeys), "", {}, {}};
    layer.signature = layer.kind + "\n" + layer.options.to_yaml();
    const ConfigNode* inputs = options.find("inputs");
    if (!inputs) layer.inputs = {above};
    const auto add = [&](std::string_view name) {
      const size_t end = std::min(name.find(':'), name.size());
      layer.inputs.push_back(numbers.at(std::string(name.substr(0, end))));
      layer.outputs.resize(layer.inputs.size());
      layer.outputs.back() = name.substr(end);
      if (end == name.size()) return;
      layer.is_fixed = true;
      if (layer.inputs.back() >= 0) layers_[static_cast<size_t>(layer.inputs.back())].is_fixed = true;
    };
    if (inputs && inputs->is_scalar()) add(inputs->text());
    if (inputs && inputs->is_sequence())
      for (const ConfigNode& one : inputs->items()) add(one.text());
    layer.outputs.resize(layer.inputs.size());
    const int number = static_cast<int>(layers_.size());
    for (const int read : layer.inputs)
      if (read >= 0) layers_[static_cast<size_t>(read)].last_reader = number;
    if (const ConfigNode* owner = options.find("shared_with")) {
      layer.is_fixed = true;
      layers_[static_cast<size_t>(numbers.at(owner->text()))].is_fixed = true;
    }
    above = numbers[layer.name] = number;
    layers_.push_back(std::move(layer));
  }
  const auto fix = [&](std::string_view name) {
    if (const int number = numbers.at(std::string(name.substr(0, name.find(':')))); number >= 0)
      layers_[static_cast<size_t>(number)].is_fixed = true;
  };
  const ConfigNode* outputs = model.find("outputs");
  if (!outputs) layers_.back().is_fixed = true;
  if (outputs && outputs->is_scalar()) fix(outputs->text());
  if (outputs && outputs->is_sequence())
    for (const ConfigNode& output : outputs->items()) fix(output.text());
}

std::optional<int> RepeatedLayers::input_of(const BlockBody& body) const {
  std::optional<int> input;
  const int first = static_cast<int>(body.first), end = static_cast<int>(body.first + body.size);
  for (size_t i = body.first; i < body.first + body.size; ++i) {
    if (at(i).is_fixed || (static_cast<int>(i) + 1 < end && at(i).last_reader >= end)) return std::nullopt;
    for (const int read : at(i).inputs) {
      if (read >= first) continue;
      if (input && *input != read) return std::nullopt;
      input = read;
    }
  }
  return input;
}

bool RepeatedLayers::are_equal(const BlockBody& a, const BlockBody& b) const {
  const auto is_inside = [](int read, const BlockBody& body) { return read >= static_cast<int>(body.first); };
  for (size_t i = 0; i < a.size; ++i) {
    const FlatLayer &one = at(a.first + i), &other = at(b.first + i);
    if (one.signature != other.signature || one.inputs.size() != other.inputs.size()) return false;
    for (size_t k = 0; k < one.inputs.size(); ++k) {
      const int read = one.inputs[k], other_read = other.inputs[k];
      if (is_inside(read, a) != is_inside(other_read, b)) return false;
      if (is_inside(read, a) && read - static_cast<int>(a.first) != other_read - static_cast<int>(b.first))
        return false;
    }
  }
  return true;
}

/// Returns the number of consecutive copies of `body` that begin at layer `first`. Each copy must read the
/// output of the previous copy.
size_t RepeatedLayers::copies_of(const BlockBody& body, size_t first) const {
  size_t copies = 0;
  for (BlockBody next{first, body.size}; next.first + next.size <= layers_.size(); next.first += next.size) {
    if (!are_equal(body, next)) break;
    const std::optional<int> input = input_of(next);
    const int before = static_cast<int>(next.first) - 1;
    if (!input || (copies > 0 && *input != before)) break;
    // Within repeated copies, the output of a copy has no name, so only the next copy can read it.
    if (copies > 0 && at(next.first - 1).last_reader >= static_cast<int>(next.first + next.size)) break;
    ++copies;
  }
  return copies;
}

BlockRun RepeatedLayers::longest_run(size_t first, const std::vector<BlockBody>& known) const {
  BlockRun best;
  size_t most = kFewestSaved - 1;
  for (size_t i = 0; i < known.size(); ++i) {
    const size_t size = known[i].size, copies = copies_of(known[i], first);
    if (copies * size > most) {
      most = copies * size;
      best = {size, copies, i};
    }
  }
  for (size_t size = 2; size <= kLongestBody && first + 2 * size <= layers_.size(); ++size) {
    if (at(first).signature != at(first + size).signature) continue;
    const size_t copies = copies_of({first, size}, first);
    if (copies < 2 || (copies - 1) * size <= most) continue;
    most = (copies - 1) * size;
    best = {size, copies, std::nullopt};
  }
  return best;
}

}  // namespace dtrain
