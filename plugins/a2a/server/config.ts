import { fields } from 'svc/sdk'

const { flag, inFile, integer, secretText, text, webAddress } = fields

/** Keys of `[a2a]` about what other programs may ask of the agents here. */
export const serverEntries = {
  enabled: flag('Serve the agents to other programs over A2A.', {}, true),
  name: text('Name in the card of the service; the name of the agent when absent.'),
  description: text('Description in the card of the service; that of the agent when absent.'),
  agent: text('The agent, by name or id, that answers a message which names none; the first one when absent.'),
  public_url: webAddress(
    'Where others reach this daemon, for the cards; the address that a request came by when absent.',
  ),
  public_cards: flag(
    'Show the cards without the key: who asks learns the name and description of each agent whose name is known.',
    inFile('shows names and descriptions of agents to everybody'),
  ),
  max_request_bytes: integer('Largest request, in bytes.', 4_194_304, 1_024, 104_857_600),
  max_parts: integer('Parts of one message.', 64, 1, 10_000),
  max_streams: integer(
    'Streams that are open at a time; a paired device or a sign-in has a quarter of them at most.',
    256,
    1,
    100_000,
  ),
  max_push_configs: integer('Addresses that are notified of one task.', 8, 0, 1_000),
  push_secret: secretText(
    'Signs notifications of tasks whose client gave no token; a random secret in the vault when absent.',
  ),
  push_give_up_hours: integer('Hours after which a notification that nobody takes is given up.', 24, 1, 720),
  task_days: integer('Days for which a task that ended is found; 0 keeps all.', 30, 0, 3_650),
}
