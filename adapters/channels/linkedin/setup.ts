import type { ChannelSetup } from 'svc/channels'

export default {
  difficulty: 'hard',
  minutes: 60,
  steps: [
    'At linkedin.com/developers create an app for the page of the organization, and have the page verify it.',
    'Under Products request the Community Management API, and wait for the approval of LinkedIn: without it every request is refused.',
    'With an administrator of the page get an access token with the scopes r_organization_social_feed, w_organization_social_feed and rw_organization_admin, such as with the token generator of the developer portal.',
    'Copy the token and, if there is one, its refresh token; the client id and the client secret stand under Auth.',
    'The number of the organization stands in the address of the admin view of its page.',
  ],
} satisfies ChannelSetup
