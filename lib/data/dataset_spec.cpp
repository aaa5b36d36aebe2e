#include "data/dataset_spec.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "base/paths.h"
#include "config/files.h"
#include "config/schema.h"
#include "data/cache.h"
#include "data/column_transforms.h"
#include "data/readers/reader.h"

namespace dtrain {

namespace {

constexpr std::array<std::string_view, 1> kSplitKeys{"rows"};

bool parse_rows(const ConfigNode& node, SplitSpec& out, Diagnostics& diagnostics) {
  std::vector<int64_t> rows;
  if (!Codec<std::vector<int64_t>>::parse(node, "rows", rows, diagnostics)) return false;
  if (rows.size() != 2 || rows[0] < 0 || rows[0] >= rows[1])
    return report_unexpected(node, "rows", "[from, to) with 0 <= from < to", diagnostics);
  out.rows = std::move(rows);
  return true;
}

/// Adds what is every split's to the schema of one reader: {"properties": {"idx": ...}, ...}, perhaps among
/// "oneOf".
void allow_rows(Json& schema) {
  Json rows = json_type("array").set("items", json_type("integer").set("minimum", 0)).set("minItems", 2);
  rows.set("maxItems", 2).set("description", "only the samples [from, to)");
  if (const Json* choices = schema.find("oneOf")) {
    Json patched = Json::array();
    for (Json choice : choices->items()) {
      allow_rows(choice);
      patched.push(std::move(choice));
    }
    schema.set("oneOf", std::move(patched));
  } else if (const Json* properties = schema.find("properties")) {
    Json more = *properties;
    schema.set("properties", more.set("rows", std::move(rows)));
  }
}

}  // namespace

template <>
struct Codec<SplitSpec> {
  static bool parse(const ConfigNode& node, const std::string&, SplitSpec& out, Diagnostics& diagnostics) {
    const size_t before = diagnostics.count();
    out.mark = node.mark();
    if (const ConfigNode* rows = node.find("rows")) parse_rows(*rows, out, diagnostics);
    out.reader = registry<Reader>().parse(node.is_mapping() ? node.without(kSplitKeys) : node, diagnostics);
    return diagnostics.count() == before;
  }
  static ConfigNode write(const SplitSpec& split) {
    return split.rows ? split.reader.resolved.with("rows", Codec<std::vector<int64_t>>::write(*split.rows))
                      : split.reader.resolved;
  }
  static Json schema() {
    return SchemaDefinitions::define("split", [] {
      Json json = registry<Reader>().choices_schema();
      allow_rows(json);
      return json;
    });
  }
};

namespace {

Schema<DatasetSpec> make_schema() {
  Schema<DatasetSpec> schema("Where samples come from and what is done to them.");
  schema
      .optional("root", &DatasetSpec::root,
                "the folder of the files named below; relative to this file, else to $DTRAIN_DATA")
      .optional("train", &DatasetSpec::train,
                "the samples to train on: a reader, optionally rows: [from, to)")
      .optional("validation", &DatasetSpec::validation, "the samples that are evaluated after each epoch")
      .optional("test", &DatasetSpec::test, "the samples that `evaluate` takes by default")
      .optional("transforms", &DatasetSpec::transforms,
                "applied in order, each to what its `of` names; without it rescale and normalize to the "
                "float inputs, reshape and cast to all inputs, one_hot to the targets")
      .optional("augment", &DatasetSpec::augment,
                "what the pictures that are trained on undergo before the transforms, in order; drawn anew "
                "in every "
                "epoch from the seed and the sample's place")
      .optional("shuffle", &DatasetSpec::shuffle,
                "a full permutation of the training split, new each epoch, from the seed")
      .optional("cache", &DatasetSpec::cache,
                "where samples stay once they are read: none, memory, {file: PATH}, or device (each GPU's "
                "memory, too)")
      .optional("prefetch", &DatasetSpec::prefetch, "batches read ahead of the step that uses them",
                between<int64_t>(0, 1024))
      .rule([](const DatasetSpec& spec, const ConfigNode& node, Diagnostics& diagnostics) {
        if (!spec.train && !spec.validation && !spec.test)
          diagnostics.error(node, "dataset: give at least one of train, validation and test");
      });
  return schema;
}

const Schema<DatasetSpec>& dataset_schema() {
  static const Schema<DatasetSpec> schema = make_schema();
  return schema;
}

std::string absolute_name(const std::filesystem::path& path) {
  std::string text = std::filesystem::path(absolute_path(path.string())).lexically_normal().string();
  if (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

/// The working directory where no file says it, but a --set (which has no lines).
std::filesystem::path folder_of(const Mark& mark) {
  return mark.file && mark.line > 0 ? std::filesystem::path(*mark.file).parent_path()
                                    : std::filesystem::path();
}

/// `cache: {file: PATH}` with an absolute path: relative to the file that says so.
ConfigNode with_absolute_cache(const ConfigNode& node) {
  const ConfigNode* cache = node.find("cache");
  const ConfigNode* file = cache ? cache->find("file") : nullptr;
  const ConfigNode* path = file && file->is_mapping() ? file->find("path") : file;
  if (!path || !path->is_scalar() || path->text().empty()) return node;
  const std::string full = absolute_name(folder_of(path->mark()) / path->text());
  const ConfigNode options = ConfigNode::mapping(
      {ConfigNode::entry("path", ConfigNode::scalar(full, true, path->mark()))}, file->mark());
  return node.with("cache", cache->with("file", options));
}

/// Where relative file names are looked up first, whatever file the configuration is read from later.
std::string absolute_root(const std::string& root, const ConfigNode& node) {
  const ConfigNode* written = node.find("root");
  if (root.empty() || !written) return absolute_name(folder_of(node.mark()) / ".");
  return absolute_name(find_file(root, written->mark()));
}

}  // namespace

const SplitSpec* DatasetSpec::find(const std::string& split) const {
  for (const auto& [name, found] : {std::pair{"train", &train}, {"validation", &validation}, {"test", &test}})
    if (split == name) return found->has_value() ? &**found : nullptr;
  return nullptr;
}

std::optional<DatasetSpec> parse_dataset(const ConfigNode& node, Diagnostics& diagnostics) {
  DatasetSpec spec;
  if (!dataset_schema().parse(with_absolute_cache(node), "dataset", spec, diagnostics)) return std::nullopt;
  spec.root = absolute_root(spec.root, node);
  spec.resolved = dataset_schema().write(spec);
  return spec;
}

Json dataset_json_schema() {
  return dataset_schema().json_schema();
}

}  // namespace dtrain
