// Classes that data call by their numbers, and the configuration by names.
#pragma once

#include <string>
#include <vector>

namespace dtrain {

/// What labels say in the place of the names: "0", "1", ... where `first`, one of the labels, is such a
/// number and no name is a number; else the names themselves. So all labels of a data set are numbers, or all
/// are names.
std::vector<std::string> label_texts(const std::vector<std::string>& names, const std::string& first);

}  // namespace dtrain
