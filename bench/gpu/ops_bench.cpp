// Times single operations on the first GPU, and exports weights for PyTorch. Prints one JSON document to
// standard output. If a section fails, the other sections are still measured.
//
//     gpu_bench [optimizer] [products] [images] [convolutions] [collective]
//     gpu_bench weights CHECKPOINT FILE
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench.h"

namespace {

using dtrain::Json;

const std::map<std::string, Json (*)()> kSections = {
    {"optimizer", dtrain::bench::measure_optimizer},
    {"products", dtrain::bench::measure_products},
    {"images", dtrain::bench::measure_images},
    {"collective", dtrain::bench::measure_collective},
    {"convolutions", dtrain::bench::measure_convolutions},
};

int measure(const std::vector<std::string>& names) {
  const dtrain::GpuPresence presence = dtrain::gpu_presence();
  Json sections = Json::object(), failed = Json::object();
  bool whole = true;
  for (const std::string& name : names) {
    try {
      if (presence.count == 0) throw dtrain::Error("no GPU (" + presence.reason + ")");
      sections.set(name, kSections.at(name)());
    } catch (const std::exception& error) {
      failed.set(name, error.what());
      whole = false;
    }
  }
  std::puts(Json::object().set("sections", sections).set("failed", failed).dump().c_str());
  return whole ? 0 : 1;
}

int usage() {
  std::fputs(
      "usage: gpu_bench [optimizer] [products] [images] [convolutions] [collective]\n"
      "       gpu_bench weights CHECKPOINT FILE\n",
      stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 3 && words[0] == "weights") {
    std::puts(dtrain::bench::export_weights(words[1], words[2]).dump().c_str());
    return 0;
  }
  for (const std::string& word : words)
    if (!kSections.contains(word)) return usage();
  if (words.empty())
    for (const auto& [name, section] : kSections) words.push_back(name);
  return measure(words);
} catch (const std::exception& error) {
  std::fprintf(stderr, "gpu_bench: %s\n", error.what());
  return 1;
}
