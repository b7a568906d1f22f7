import * as v from 'valibot'

/** A row of `cluster_member`. */
export const MemberRow = v.object({
  id: v.string(),
  home_id: v.string(),
  name: v.string(),
  host_name: v.string(),
  address: v.nullable(v.string()),
  version: v.string(),
  started_at: v.string(),
  state: v.picklist(['active', 'draining']),
  lease_ms: v.number(),
  beats: v.number(),
})
export type MemberRow = v.InferOutput<typeof MemberRow>
