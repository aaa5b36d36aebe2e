#include "interop/keras/import/masks.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "interop/keras/files/json.h"
#include "interop/keras/files/mask_rules.h"

namespace dtrain {

namespace {

bool is_set_in(const Json& config, const char* option) {
  const Json* const value = value_at(config, option);
  return value && value->is_bool() && value->as_bool();
}

/// Returns whether a layer, or the layer in a Bidirectional, returns the states of all steps.
bool returns_sequences(const KerasModelLayer& layer) {
  const Json* const inner = value_at(layer.config, "layer");
  const Json* const config = inner ? value_at(*inner, "config") : &layer.config;
  return config && is_set_in(*config, "return_sequences");
}

class MaskFlow {
 public:
  using RuleOf = std::function<MaskRule(const KerasLayerCall&)>;

  /// `creators`: the layers whose masks this object follows.
  MaskFlow(const KerasCalls& calls, const std::set<const KerasModelLayer*>& creators, int keras_major,
           const RuleOf& rule_of)
      : calls_(calls),
        creators_(creators),
        keras_major_(keras_major),
        rule_of_(rule_of),
        masks_(calls.calls.size(), kNone) {
    found_.is_used.assign(masks_.size(), false);
    found_.ignores.assign(masks_.size(), false);
  }

  KerasMasks follow(const std::vector<bool>& is_needed) {
    for (size_t i = 0; i < masks_.size(); ++i)
      if (is_needed[i]) masks_[i] = mask_after(i);
    for (const KerasValue& output : calls_.outputs) use(mask_of(output));
    return std::move(found_);
  }

 private:
  // Masks are named by the call that creates them. Where Keras has a mask and dtrain has none, the name is
  // beyond(mask).
  static constexpr int kNone = -1;
  static int beyond(int mask) { return mask >= 0 ? -2 - mask : mask; }
  static bool is_beyond(int mask) { return mask < kNone; }

  const KerasLayerCall& call(size_t i) const { return calls_.calls[i]; }
  int mask_of(const KerasValue& value) const {
    return value.call < 0 ? kNone : masks_[static_cast<size_t>(value.call)];
  }
  void use(int mask) {
    if (mask != kNone) found_.is_used[static_cast<size_t>(is_beyond(mask) ? -2 - mask : mask)] = true;
  }

  /// Returns the mask of a call's output.
  int mask_after(size_t i) {
    if (creators_.contains(call(i).layer)) return static_cast<int>(i);
    std::vector<int> given;
    for (const KerasValue& input : call(i).inputs) given.push_back(mask_of(input));
    if (std::all_of(given.begin(), given.end(), [](int mask) { return mask == kNone; })) return kNone;
    switch (keras_mask_rule(call(i).layer->class_name)) {
      case KerasMaskRule::lost:
        ignore(i, given);
        return kNone;
      case KerasMaskRule::passed:
        // Batch normalization also reads the mask.
        if (given[0] >= 0 && rule_of_(call(i)) == MaskRule::read) use(given[0]);
        return given[0];
      case KerasMaskRule::merged:
        return merged(i, given);
      case KerasMaskRule::read:
        return read(i, given);
    }
    return kNone;
  }

  /// Returns the first mask; none if there is no mask.
  static int first_of(const std::vector<int>& given) {
    const auto mask = std::find_if(given.begin(), given.end(), [](int one) { return one != kNone; });
    return mask == given.end() ? kNone : *mask;
  }

  int ignore(size_t i, const std::vector<int>& given) {
    found_.ignores[i] = std::any_of(given.begin(), given.end(), [](int mask) { return mask >= 0; });
    return beyond(first_of(given));
  }

  int merged(size_t i, const std::vector<int>& given) {
    const Json* const axis = value_at(call(i).layer->config, "axis");
    const bool along_steps = axis && axis->is_int() && axis->as_int() != -1 && axis->as_int() != 2;
    if (along_steps) return ignore(i, given);
    if (std::find(given.begin(), given.end(), kNone) != given.end())
      return keras_major_ < 3 ? beyond(first_of(given))
                              : kNone;  // Keras 2 kept the masks of the other inputs
    if (const auto lost = std::find_if(given.begin(), given.end(), is_beyond); lost != given.end())
      return *lost;
    const bool differ = std::any_of(given.begin(), given.end(), [&](int mask) { return mask != given[0]; });
    return differ ? ignore(i, given) : given[0];
  }

  int read(size_t i, const std::vector<int>& given) {
    const KerasLayerCall& reader = call(i);
    const std::string& name = reader.layer->class_name;
    const bool is_attention = name.ends_with("Attention");
    // Attention reads the masks of values and keys; other layers read the mask of the first input.
    std::set<int> wanted;
    if (is_attention && given.size() > 1)
      wanted.insert(given.begin() + 1, given.end());
    else
      wanted.insert(given[0]);
    wanted.erase(kNone);
    for (const int mask : wanted) use(mask);
    if (std::any_of(wanted.begin(), wanted.end(), is_beyond))
      problem(reader, "reads a mask that a layer before it cannot pass on in dtrain");
    else if (wanted.size() > 1)
      problem(reader, "reads values and keys with different masks");
    else if (!wanted.empty() && rule_of_(reader) == MaskRule::refused)
      problem(reader, "reads a mask and returns the steps in reverse order (go_backwards)");
    const bool keeps = is_attention || returns_sequences(*reader.layer);
    return keeps ? given[0] : kNone;
  }

  void problem(const KerasLayerCall& reader, const char* text) {
    found_.problems.push_back(fmt::format("{} ({}): {}", reader.path, reader.layer->class_name, text));
  }

  const KerasCalls& calls_;
  const std::set<const KerasModelLayer*>& creators_;
  const int keras_major_;
  const RuleOf& rule_of_;
  std::vector<int> masks_;  // mask of each call's output
  KerasMasks found_;
};

}  // namespace

KerasMasks follow_masks(const KerasCalls& calls, const std::vector<bool>& is_needed, int keras_major,
                        const std::function<MaskRule(const KerasLayerCall&)>& rule_of) {
  std::set<const KerasModelLayer*> creators;
  for (const KerasLayerCall& call : calls.calls)
    if (call.layer->class_name == "Masking" || is_set_in(call.layer->config, "mask_zero"))
      creators.insert(call.layer);
  const KerasMasks all = MaskFlow(calls, creators, keras_major, rule_of).follow(is_needed);
  std::set<const KerasModelLayer*> used;
  for (size_t i = 0; i < calls.calls.size(); ++i)
    if (const KerasModelLayer* layer = calls.calls[i].layer; all.is_used[i] || layer->class_name == "Masking")
      used.insert(layer);
  return MaskFlow(calls, used, keras_major, rule_of).follow(is_needed);
}

}  // namespace dtrain
