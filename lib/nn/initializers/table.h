// Each adds the kinds of one file to the table of initializers.
#pragma once

#include "nn/initializer.h"

namespace dtrain {

void add_constants(KindTable<Initializer>& table);         // zeros, ones, constant
void add_random(KindTable<Initializer>& table);            // random_uniform, random_normal, truncated_normal
void add_variance_scaling(KindTable<Initializer>& table);  // variance_scaling, glorot_*, he_*, lecun_*

}  // namespace dtrain
