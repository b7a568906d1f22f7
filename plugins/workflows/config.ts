import * as v from 'valibot'
import { fields, fileOnly } from 'svc/sdk'

const { integer } = fields

/** `[plugins.workflows]`. */
export const Settings = fileOnly(
  'bounds what workflows store and how much they make agents work',
  v.object({
    max_workflows: integer('Workflows that can be defined.', 1_000, 1, 100_000),
    kept_revisions: integer('Revisions of a workflow that are kept, the newest.', 20, 1, 1_000),
    max_steps: integer('Steps of a workflow.', 100, 1, 1_000),
    max_prompt_chars: integer('Characters of the prompt of a step as it is defined.', 50_000, 100, 1_000_000),
    max_file_bytes: integer('Bytes of a file in the folder of workflows.', 1_000_000, 1_000, 100_000_000),
    max_rendered_chars: integer(
      'Characters of a prompt or another text of a step after the placeholders are replaced.',
      500_000,
      100,
      10_000_000,
    ),
    max_iterations: integer('Iterations that a loop may ask for.', 100, 1, 10_000),
    max_retries: integer('Retries that a step may ask for.', 20, 0, 1_000),
    max_step_timeout_secs: integer('Seconds that one attempt of a step may ask for.', 86_400, 1, 2_592_000),
    total_timeout_secs: integer('Seconds that a run may work unless its workflow says otherwise.', 3_600, 1, 2_592_000),
    max_active_runs: integer('Runs that have not ended, waiting and paused ones included.', 1_000, 1, 100_000),
    max_depth: integer('Workflows that may run each other, one inside of the next.', 5, 1, 50),
    max_output_chars: integer('Characters of the output of a step; what is beyond is cut.', 500_000, 100, 10_000_000),
    max_kept_runs: integer('Ended runs that are kept, the newest.', 10_000, 1, 10_000_000),
  }),
)
export type Settings = v.InferOutput<typeof Settings>
