import { fields } from 'svc/sdk'

const { integer } = fields

export const graphEntries = {
  max_entities_per_agent: integer(
    'People, things and places that the graph of one agent has at most.',
    10_000,
    1,
    1_000_000,
  ),
  max_relations_per_agent: integer('Relations of one agent at most.', 20_000, 1, 10_000_000),
  max_graph_depth: integer('Most steps of one query of the graph.', 3, 1, 6),
  max_relations_found: integer('Relations that one query of the graph finds at most.', 200, 1, 10_000),
}
