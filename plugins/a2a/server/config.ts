import { fields } from 'svc/sdk'

const { flag, inFile, text, webAddress } = fields

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
}
