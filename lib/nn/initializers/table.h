// Each function adds the initializers of one file to the registry of initializers.
#pragma once

#include "nn/initializer.h"

namespace dtrain {

void add_constants(Registry<Initializer>& table);  // zeros, ones, constant
void add_orthogonal(Registry<Initializer>& table);
void add_random(Registry<Initializer>& table);            // random_uniform, random_normal, truncated_normal
void add_variance_scaling(Registry<Initializer>& table);  // variance_scaling, glorot_*, he_*, lecun_*

}  // namespace dtrain
