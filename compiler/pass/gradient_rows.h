/* gradient_rows.h: the gradient of a lookup: rows, and indices that say which rows of the variable they are. Both together are passed
 * by all ways; the workers' are put behind each other. */
#ifndef TFC_COMPILER_GRADIENT_ROWS_H
#define TFC_COMPILER_GRADIENT_ROWS_H

#include "compiler/pass/gradients.h"

/* Cuts the flow at the rows and indices of the updates that no value of the variable's shape is for. */
void gradient_rows_cut(struct reach *r, struct gradients *out);
/* Whether data come to an update of the variable through rows of it that are summed up by indices: of those the workers' would have to be
 * gathered. */
bool gradient_rows_come(struct reach *r, flow_id update, const struct flow_var *var);

#endif
