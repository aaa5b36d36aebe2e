#include "interop/keras/import/masks.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "interop/keras/files/json.h"
#include "interop/keras/files/mask_rules.h"
#include "interop/keras/import/mask_meanings.h"

namespace dtrain {

namespace {

/// Returns true if a recurrent layer, or the inner layer of a Bidirectional, returns the states of all steps.
bool returns_sequences(const KerasModelLayer& layer) {
  const Json* const inner = value_at(layer.config, "layer");
  const Json* const config = inner ? value_at(*inner, "config") : &layer.config;
  return config && is_true_at(*config, "return_sequences");
}

class MaskFlow {
 public:
  using RuleOf = std::function<MaskRule(const KerasLayerCall&)>;

  /// `creators`: the layers that create the masks that this object follows.
  MaskFlow(const KerasCalls& calls, const std::set<const KerasModelLayer*>& creators, int keras_major,
           const RuleOf& rule_of)
      : calls_(calls),
        creators_(creators),
        keras_major_(keras_major),
        rule_of_(rule_of),
        masks_(calls.calls.size(), kNone),
        is_gone_(masks_.size(), false),
        differs_at_padding_(masks_.size(), false) {
    found_.is_used.assign(masks_.size(), false);
    found_.ignores.assign(masks_.size(), false);
    for (const KerasGivenMask& given : calls.given_masks) given_.emplace(given.call, &given);
  }

  KerasMasks follow(const std::vector<bool>& is_needed) {
    for (size_t i = 0; i < masks_.size(); ++i) {
      const auto [begin, end] = given_.equal_range(i);
      for (auto given = begin; given != end; ++given)
        if (given->second->of_model) set_gone(given->second->value, false);
      if (!is_needed[i]) continue;
      masks_[i] = mask_after(i);
      differs_at_padding_[i] = follow_padding(i);
      if (removes_masks(i))
        for (const KerasValue& input : call(i).inputs) set_gone(input, true);
    }
    for (const KerasValue& output : calls_.outputs)
      if (output.call < 0 || !is_gone_[static_cast<size_t>(output.call)]) use(mask_of(output));
    return std::move(found_);
  }

  /// Returns the problems that do not depend on which masks are left out. There are three kinds: a layer
  /// reads padded positions where dtrain and Keras compute different values; Keras may compute a layer either
  /// before or after attention removes its mask; the mask argument of a call is not the mask of its input.
  /// Call this function after follow().
  std::vector<std::string> other_problems() const {
    const MaskMeanings meanings(calls_);
    std::vector<std::string> problems = padding_problems_;
    add_unordered_reads(problems);
    for (const KerasGivenMask& given : calls_.given_masks) {
      const int mask = mask_of(given.value);
      if (is_beyond(mask)) continue;  // reported by read() if a layer reads this mask
      const MaskMeaning expected = mask == kNone ? MaskMeaning{MaskMeaning::Kind::all}
                                                 : MaskMeanings::of_creator(call(static_cast<size_t>(mask)));
      const MaskMeaning found = meanings.of(given.mask);
      if (found == expected && found.kind != MaskMeaning::Kind::unknown) continue;
      problems.push_back(
          fmt::format("{}: is called with {}; a layer of dtrain can only read the mask that its input got "
                      "from an Embedding with mask_zero or from a Masking layer",
                      given.path,
                      mask == kNone ? "a mask that its input does not have"
                                    : "a mask that is not the mask of its input"));
    }
    return problems;
  }

 private:
  // A mask is represented by the index of the call that creates it. beyond(mask) represents a mask that a
  // value has in Keras, but cannot have in dtrain.
  static constexpr int kNone = -1;
  static int beyond(int mask) { return mask >= 0 ? -2 - mask : mask; }
  static bool is_beyond(int mask) { return mask < kNone; }

  const KerasLayerCall& call(size_t i) const { return calls_.calls[i]; }
  int mask_of(const KerasValue& value) const {
    return value.call < 0 || is_state(value) ? kNone : masks_[static_cast<size_t>(value.call)];
  }
  /// Returns true if a value is a state that a recurrent layer returns. States have no mask.
  bool is_state(const KerasValue& value) const {
    const KerasModelLayer& layer = *call(static_cast<size_t>(value.call)).layer;
    const bool has_two = layer.class_name == "Bidirectional" && !value_at(layer.config, "merge_mode");
    return value.output > (has_two ? 1 : 0);
  }
  void set_gone(const KerasValue& value, bool is_gone) {
    if (value.call >= 0) is_gone_[static_cast<size_t>(value.call)] = is_gone;
  }
  /// Returns true if the call passes the mask of this input as an argument.
  bool is_given(size_t i, const KerasValue& input) const {
    const auto [begin, end] = given_.equal_range(i);
    return std::any_of(begin, end, [&](const auto& given) {
      return !given.second->of_model && given.second->value == input;
    });
  }
  /// Returns true if attention has already removed the mask of an input when the call is computed. Returns
  /// false if the mask is passed as an argument of the call, because the argument replaces the mask of the
  /// input.
  bool is_gone(size_t i, size_t input) const {
    const KerasValue& value = call(i).inputs[input];
    return value.call >= 0 && is_gone_[static_cast<size_t>(value.call)] && !is_given(i, value);
  }
  /// Returns true if a call removes the masks of its inputs. All later calls that read the same inputs then
  /// find no mask.
  bool removes_masks(size_t i) const {
    return keras_major_ >= 3 && call(i).layer->class_name == "MultiHeadAttention";
  }
  /// For each call, returns the number of calls on the longest path from this call to an output. Keras
  /// computes the calls in descending order of these numbers.
  std::vector<int> depths() const {
    std::vector<int> depths(masks_.size(), 0);
    const auto set_below = [&](const KerasValue& value, int depth) {
      if (value.call >= 0)
        depths[static_cast<size_t>(value.call)] = std::max(depths[static_cast<size_t>(value.call)], depth);
    };
    for (size_t i = masks_.size(); i-- > 0;) {
      for (const KerasValue& input : call(i).inputs) set_below(input, depths[i] + 1);
      const auto [begin, end] = given_.equal_range(i);
      for (auto given = begin; given != end; ++given) set_below(given->second->mask, depths[i] + 1);
    }
    return depths;
  }
  /// Adds a problem for each call that reads a mask if an attention layer of the same depth removes this
  /// mask. The order of the two calls then matters, but the file does not determine it.
  void add_unordered_reads(std::vector<std::string>& problems) const {
    const std::vector<int> depth = depths();
    std::map<int, std::vector<size_t>> readers;  // for each call, the calls that read its output
    for (size_t i = 0; i < masks_.size(); ++i)
      for (const KerasValue& input : call(i).inputs)
        if (mask_of(input) != kNone && keras_mask_rule(call(i).layer->class_name) == KerasMaskRule::read) {
          std::vector<size_t>& known = readers[input.call];
          if (known.empty() || known.back() != i) known.push_back(i);
        }
    for (const auto& [value, calls] : readers)
      for (const size_t i : calls) {
        const auto removes = [&](size_t other) {
          return other != i && depth[other] == depth[i] && removes_masks(other);
        };
        const auto other = std::find_if(calls.begin(), calls.end(), removes);
        if (other == calls.end() || is_given(i, {value, -1, 0})) continue;
        problems.push_back(
            fmt::format("{}: reads a mask that '{}' removes, but Keras may compute either of the two calls "
                        "first; let one of them read a separate, identical Embedding or Masking layer",
                        call(i).path, call(*other).path));
      }
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
        // dtrain's batch_normalization reads the mask in addition to passing it on.
        if (given[0] >= 0 && rule_of_(call(i)) == MaskRule::read) use(given[0]);
        is_gone_[i] = is_gone(i, 0);
        return given[0];
      case KerasMaskRule::merged:
        return merged(i, given);
      case KerasMaskRule::read:
        return read(i, given);
    }
    return kNone;
  }

  /// Returns true if the output of a call differs between Keras and dtrain at padded positions. The outputs
  /// differ because in Keras, a padded query attends to all positions. Adds a problem if the call treats
  /// padded positions as data.
  bool follow_padding(size_t i) {
    const KerasLayerCall& reader = call(i);
    const std::vector<KerasValue>& inputs = reader.inputs;
    const auto differs = [&](const KerasValue& value) {
      return value.call >= 0 && differs_at_padding_[static_cast<size_t>(value.call)];
    };
    const auto is_masked = [&](size_t k) { return mask_of(inputs[k]) != kNone && !is_gone(i, k); };
    const KerasMaskRule rule = keras_mask_rule(reader.layer->class_name);
    const bool is_attention = reader.layer->class_name.ends_with("Attention"),
               any_differs = std::any_of(inputs.begin(), inputs.end(), differs);
    if (inputs.empty() || (!any_differs && !is_attention)) return false;
    if (rule == KerasMaskRule::read) {
      bool hides_padding = false, reads_padding = false;
      const bool reads_others = is_attention && inputs.size() > 1;
      for (size_t k = reads_others ? 1 : 0; k < (reads_others ? inputs.size() : 1); ++k) {
        hides_padding = hides_padding || is_masked(k);
        reads_padding = reads_padding || differs(inputs[k]);
      }
      if (reads_padding && !hides_padding) add_padding_problem(reader);
      return is_attention && (is_masked(0) || differs(inputs[0]));
    }
    const bool is_by_position = rule != KerasMaskRule::lost || rule_of_(reader) == MaskRule::passed;
    if (any_differs && !is_by_position) add_padding_problem(reader);
    return any_differs && is_by_position;
  }

  void add_padding_problem(const KerasLayerCall& reader) {
    padding_problems_.push_back(
        fmt::format("{} ({}): reads the output of attention at padded positions, where Keras and dtrain "
                    "differ: in Keras, padded positions attend to all positions. To leave padded positions "
                    "out, use a GlobalAveragePooling1D that receives the mask",
                    reader.path, reader.layer->class_name));
  }

  /// Returns the first mask that is not kNone. Returns kNone if there is no mask.
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
      // If some inputs have no mask, the output has the masks of the other inputs in Keras 2, but no mask in
      // Keras 3.
      return keras_major_ < 3 ? beyond(first_of(given)) : kNone;
    bool any_gone = false;
    for (size_t k = 0; k < given.size(); ++k) any_gone = any_gone || is_gone(i, k);
    if (const auto lost = std::find_if(given.begin(), given.end(), is_beyond); lost != given.end())
      return any_gone ? kNone : *lost;
    const bool differ = std::any_of(given.begin(), given.end(), [&](int mask) { return mask != given[0]; });
    if (differ) {
      const int ignored = ignore(i, given);
      return any_gone ? kNone : ignored;
    }
    is_gone_[i] = any_gone;
    return given[0];
  }

  int read(size_t i, const std::vector<int>& given) {
    const KerasLayerCall& reader = call(i);
    const std::string& name = reader.layer->class_name;
    const bool is_attention = name.ends_with("Attention");
    const bool keeps = is_attention || returns_sequences(*reader.layer);
    // Attention with several inputs reads the masks of its values and keys. Other layers read the mask of the
    // first input.
    const bool reads_others = is_attention && given.size() > 1;
    std::set<int> wanted, gone;
    for (size_t k = reads_others ? 1 : 0; k < (reads_others ? given.size() : 1); ++k)
      if (given[k] != kNone) (is_gone(i, k) ? gone : wanted).insert(given[k]);
    if (wanted.empty() && !gone.empty()) {
      ignore(i, given);
      return keeps && !is_gone(i, 0) ? beyond(given[0]) : kNone;
    }
    for (const int mask : wanted) use(mask);
    wanted.insert(gone.begin(), gone.end());
    is_gone_[i] = is_gone(i, 0);
    if (std::any_of(wanted.begin(), wanted.end(), is_beyond))
      problem(reader, "reads a mask that dtrain cannot pass on through an earlier layer");
    else if (wanted.size() > 1)
      problem(reader, "reads values and keys with different masks");
    else if (!wanted.empty() && rule_of_(reader) == MaskRule::refused)
      problem(reader,
              "reads a mask, which dtrain does not support for a layer that returns its steps in "
              "reverse order (go_backwards)");
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
  // indexed by call; true if the output has a mask in dtrain, but its mask was removed in Keras before the
  // current call
  std::vector<bool> is_gone_;
  std::vector<bool> differs_at_padding_;  // indexed by call
  std::vector<std::string> padding_problems_;
  std::multimap<size_t, const KerasGivenMask*> given_;  // indexed by call
  KerasMasks found_;
};

}  // namespace

KerasMasks follow_masks(const KerasCalls& calls, const std::vector<bool>& is_needed, int keras_major,
                        const std::function<MaskRule(const KerasLayerCall&)>& rule_of) {
  std::set<const KerasModelLayer*> creators;
  for (const KerasLayerCall& call : calls.calls)
    if (call.layer->class_name == "Masking" || is_true_at(call.layer->config, "mask_zero"))
      creators.insert(call.layer);
  MaskFlow every(calls, creators, keras_major, rule_of);
  const KerasMasks all = every.follow(is_needed);
  std::set<const KerasModelLayer*> used;
  for (size_t i = 0; i < calls.calls.size(); ++i)
    if (const KerasModelLayer* layer = calls.calls[i].layer; all.is_used[i] || layer->class_name == "Masking")
      used.insert(layer);
  KerasMasks result = MaskFlow(calls, used, keras_major, rule_of).follow(is_needed);
  // The problems of the first pass are added, too: the second pass misses a problem at a merging layer if the
  // mask of one of the layer's other inputs is left out.
  for (const std::string& problem : all.problems)
    if (std::find(result.problems.begin(), result.problems.end(), problem) == result.problems.end())
      result.problems.push_back(problem);
  for (std::string& problem : every.other_problems()) result.problems.push_back(std::move(problem));
  return result;
}

}  // namespace dtrain
