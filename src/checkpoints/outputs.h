/* SPDX-License-Identifier: MIT
**
** outputs.h - which stored tensors make which tensors of the result.
*/
#ifndef MGRID_OUTPUTS_H
#define MGRID_OUTPUTS_H

#include "checkpoints/names.h"
#include "checkpoints/views.h"
#include "plan/plan.h"

typedef struct output {
  const char         *name; /* in the result */
  const char         *of;   /* the tensor of the plan that it is cut as */
  const mgrid_tensor *tensor;
  view                view;
} output;

typedef struct outputs {
  const mgrid_plan *plan;
  const shards     *from;
  const char       *recipe; /* for messages */
  const names      *given;  /* of --names; NULL: none */
  const names      *own;    /* of the recipe; NULL: none */
  bool              convert;
  size_t            n;
  output           *at;              /* [n] */
  bool             *used;            /* by stored tensor */
  bool             *made;            /* by tensor of the plan */
  json_t           *stored, *wanted; /* name -> number, of the checkpoint's tensors and of the plan's */
} outputs;

/* A tensor on either side: its type and shape. rules.c */
typedef struct form {
  const char *name, *type;
  size_t      naxes;
  int64_t     shape[MGRID_AXES_MAX];
} form;
form form_of_tensor(const char *name, const mgrid_tensor *t);
form form_of_stored(const shards_tensor *t);
void form_put(mgrid_text *t, const form *f); /* append "f32 4 x 5" */
/* Refuse elements that cannot become those of the other type, or only with --convert. */
mgrid_status form_type(const outputs *o, const form *stored, const form *wanted, mgrid_error *err);
/* Make the view of a tensor of the plan by the first rule that applies: whose names on one side fit it, and whose other
** side the checkpoint has. No rule does: the view stays empty. rules.c */
mgrid_status rules_make(outputs *o, const names *all, const char *wanted, view *v, mgrid_error *err);

/* Find them: the fields up to `convert` are set. Refused are stored tensors that nothing needs, and tensors of
** the plan that nothing makes. */
mgrid_status outputs_find(outputs *o, mgrid_error *err);
void         outputs_free(outputs *o);

#endif
