#include "print/onnx_listing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "base/utf8.h"

namespace dtrain {

namespace {

int64_t count_numbers(const OnnxFile& file) {
  int64_t numbers = 0;
  for (const OnnxInitializer& array : file.initializers) numbers += array.shape.elements();
  return numbers;
}

Json to_json(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push(text);
  return list;
}

Json to_json(const std::vector<OnnxEnd>& ends) {
  Json list = Json::array();
  for (const OnnxEnd& end : ends)
    list.push(Json::object().set("name", end.name).set("dtype", end.type).set("shape", to_json(end.extents)));
  return list;
}

Json file_json(const OnnxFile& file, const std::string& path) {
  Json metadata = Json::object();
  for (const auto& [key, value] : file.metadata) metadata.set(key, value);
  return Json::object()
      .set("path", path)
      .set("opset", file.opset)
      .set("ir_version", file.ir_version)
      .set("producer", file.producer)
      .set("name", file.graph)
      .set("inputs", to_json(file.inputs))
      .set("outputs", to_json(file.outputs))
      .set("metadata", std::move(metadata));
}

std::string file_text(const OnnxFile& file, const std::string& path) {
  std::string text =
      fmt::format("file   {}, ONNX, opset {} (IR {}), {}, {}\n", path, file.opset, file.ir_version,
                  format_plural(static_cast<int64_t>(file.operators.size()), "operator"),
                  format_plural(count_numbers(file), "number"));
  if (!file.producer.empty()) text += fmt::format("from   {}\n", file.producer);
  for (const auto& [title, ends] : {std::pair{"input", &file.inputs}, std::pair{"output", &file.outputs}})
    for (const OnnxEnd& end : *ends)
      text += fmt::format("{:<6} {} [{}] {}\n", title, end.name, fmt::join(end.extents, ", "), end.type);
  constexpr size_t kMostShown = 80;  // longer values are truncated to this number of bytes
  for (const auto& [key, value] : file.metadata)
    text += fmt::format("{:<6} {}\n", key, shortened(value, kMostShown));
  return text + "\n";
}

}  // namespace

Json arrays_json(const OnnxFile& file, const std::string& path) {
  Json weights = Json::array();
  for (const OnnxInitializer& array : file.initializers) {
    Json shape = Json::array();
    for (const int64_t extent : array.shape) shape.push(extent);
    weights.push(
        Json::object().set("name", array.name).set("shape", std::move(shape)).set("dtype", array.type));
  }
  return file_json(file, path).set("weights", std::move(weights));
}

std::string arrays_text(const OnnxFile& file, const std::string& path) {
  Table table({{"array"}, {"shape"}, {"type"}, {"elements", Table::Align::right}});
  for (const OnnxInitializer& array : file.initializers)
    table.add({array.name, array.shape.str(), array.type, format_count(array.shape.elements())});
  return file_text(file, path) + table.str();
}

Json operators_json(const OnnxFile& file, const std::string& path) {
  Json operators = Json::array();
  for (const OnnxFileNode& one : file.operators)
    operators.push(Json::object()
                       .set("name", one.name)
                       .set("op", one.op)
                       .set("domain", one.domain)
                       .set("inputs", to_json(one.inputs))
                       .set("outputs", to_json(one.outputs)));
  return file_json(file, path).set("operators", std::move(operators));
}

std::string operators_text(const OnnxFile& file, const std::string& path) {
  Table table({{"operator"}, {"op"}, {"inputs"}, {"outputs"}});
  for (const OnnxFileNode& one : file.operators)
    table.add({one.name, one.domain.empty() ? one.op : one.domain + "." + one.op,
               fmt::format("{}", fmt::join(one.inputs, " ")),
               fmt::format("{}", fmt::join(one.outputs, " "))});
  return file_text(file, path) + table.str();
}

}  // namespace dtrain
