import type { FilePage } from 'svc/sdk'

export const referencePage: FilePage = {
  path: 'api',
  title: 'API reference',
  group: 'Operations',
  file: 'pages/api.html',
  url: '/docs',
  assets: ['api.js', 'api.css', 'code.css', 'copy.js', 'operation.js', 'request.js', 'schema.js', 'try.js'],
}

export const guidePage: FilePage = {
  path: 'guide',
  title: 'Guide',
  group: 'Operations',
  file: 'pages/guide.html',
  url: '/docs/guide',
  assets: ['guide.js', 'guide.css', 'code.css', 'copy.js'],
}
