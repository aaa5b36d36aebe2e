#include "data/columns/sample_forms.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "data/opening.h"
#include "data/readers/reader.h"

namespace dtrain {

namespace {

/// Returns the shape of a sample. If the sample is a window, it consists of `rows` rows of the shape `row`.
Shape of_rows(const Shape& row, const std::optional<int64_t>& rows) {
  return rows ? row.prepended(*rows) : row;
}

/// Throws UserError about the value `auto` at `place` in the configuration.
[[noreturn]] void fail_auto(const Mark& place, const std::string& message) {
  throw LocatedError(place, "auto: " + message);
}

/// Returns the column to request from the reader. Image readers need the shape in the request, so their
/// option `size` must be set if the shape is not known.
TensorSpec asked_for(const WantedColumn& wanted, const Reader& reader, const Mark& place) {
  if (wanted.shape) return {wanted.name, *wanted.shape, wanted.dtype};
  if (const auto pictures = reader.picture_options()) {
    if (!pictures->size)
      fail_auto(place,
                "the images can have any size, so the shape is not known; set `size: [height, width]` in the "
                "reader");
    return {wanted.name,
            {pictures->size->height, pictures->size->width, pictures->channels.value_or(3)},
            wanted.dtype};
  }
  return {wanted.name, {}, wanted.dtype};
}

template <class V>
int64_t greatest(const Column& column) {
  const auto block = std::max<int64_t>((int64_t{1} << 20) / std::max<int64_t>(column.row_elements(), 1), 1);
  std::vector<V> values;
  int64_t most = -1;
  for (int64_t first = 0; first < column.size(); first += block) {
    const std::vector<int64_t> rows = row_numbers(first, std::min(block, column.size() - first));
    values.resize(rows.size() * static_cast<size_t>(column.row_elements()));
    column.read(rows, values.data());
    for (const V value : values) most = std::max(most, static_cast<int64_t>(value));
  }
  return most;
}

/// Returns the number of classes of a target that consists of class indices: the number of class names if
/// there are names, otherwise the greatest index plus 1.
int64_t count_classes(const Column& column, const std::string& name, const SourceFacts& facts,
                      const Mark& place) {
  const auto names = facts.class_names.find(name);
  if (names != facts.class_names.end()) return static_cast<int64_t>(names->second.size());
  if (column.spec().dtype == DType::uint8) return greatest<uint8_t>(column) + 1;
  if (column.spec().dtype == DType::int32) return greatest<int32_t>(column) + 1;
  fail_auto(
      place,
      fmt::format("the classes cannot be counted: '{}' must contain integer class indices, but contains {}",
                  column.spec().name, name_of(column.spec().dtype)));
}

}  // namespace

SampleForms training_forms(const DatasetSpec& spec, const std::vector<WantedColumn>& inputs,
                           const std::vector<WantedColumn>& targets, const Mark& place) {
  const SplitSpec& split = *spec.train;
  std::vector<TensorSpec> wanted_inputs, wanted_targets;
  ReadRequest request{spec.root, split.mark, {}, {}, spec.facts.source};
  const SourceColumns source = at_place(split.mark, [&] {
    if (!split.reader->has_shapes())
      fail_auto(place, fmt::format("the reader {} generates samples of the shape that the model needs, so it "
                                   "cannot determine this shape; replace `auto` by a number",
                                   split.reader.name));
    for (const WantedColumn& input : inputs) wanted_inputs.push_back(asked_for(input, *split.reader, place));
    for (const WantedColumn& target : targets)
      wanted_targets.push_back({target.name, target.shape.value_or(Shape()), target.dtype});
    if (split.windows) {
      request.windows = &*split.windows;
      for (size_t i = 0; i < inputs.size(); ++i)
        if (inputs[i].shape)
          wanted_inputs[i] = rows_of_windows(split.windows, {wanted_inputs[i]}, false).front();
    }
    request.inputs = before_transforms(wanted_inputs, false, spec.transforms);
    request.targets = before_transforms(split.targets_to_read(wanted_targets), true, spec.transforms);
    split.reader->paths(request);  // reports all missing files together
    return split.reader->open(request);
  });

  std::optional<int64_t> length, horizon;
  if (split.windows) {
    length = split.windows->length;
    horizon = split.windows->horizon;
  }
  SampleForms forms;
  size_t next = 0;
  for (const TensorSpec& input : wanted_inputs)
    forms.inputs.push_back(of_rows(
        transformed(source.columns[next++]->spec(), input, false, spec.transforms, {spec.augment}).shape,
        length));
  for (const TensorSpec& target : wanted_targets) {
    if (const InputTarget* same = split.find_input_target(target.name)) {
      const auto of_input = [&](const WantedColumn& input) { return input.name == same->input; };
      const auto found = std::find_if(inputs.begin(), inputs.end(), of_input);
      forms.targets.push_back(
          found == inputs.end() ? Shape() : forms.inputs[static_cast<size_t>(found - inputs.begin())]);
      forms.classes.push_back(0);
      continue;
    }
    const Column& column = *source.columns[next++];
    AugmentPlan augment;
    if (const auto pixels = split.reader->target_picture())
      augment = {spec.augment, false, AugmentPlan::Target{*pixels, source.columns.front()->spec().shape}};
    forms.targets.push_back(
        of_rows(transformed(column.spec(), target, true, spec.transforms, augment).shape, horizon));
    forms.classes.push_back(target.dtype != DType::int32 ? 0 : at_place(split.mark, [&] {
      const std::optional<int64_t> known = split.reader->target_classes();
      return known ? *known : count_classes(column, name_for_of(target), source.facts, place);
    }));
  }
  return forms;
}

}  // namespace dtrain
