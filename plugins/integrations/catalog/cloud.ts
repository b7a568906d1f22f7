import type { TemplateInput } from './template.ts'

export const cloud: readonly TemplateInput[] = [
  {
    id: 'aws',
    name: 'Amazon Web Services',
    description: 'Calls the interfaces of Amazon Web Services',
    category: 'cloud',
    icon: '☁️',
    tags: ['cloud', 'amazon'],
    transport: {
      type: 'stdio',
      command: 'awslabs.aws-api-mcp-server',
      hosts: ['*.amazonaws.com', '*.api.aws'],
      package: { runner: 'uvx', name: 'awslabs.aws-api-mcp-server', version: '1.5.6' },
    },
    required_env: [
      {
        name: 'AWS_ACCESS_KEY_ID',
        label: 'Access key id',
        help: 'Of a user that may only do what agents may do.',
        get_url: 'https://console.aws.amazon.com/iam/home#/security_credentials',
      },
      { name: 'AWS_SECRET_ACCESS_KEY', label: 'Secret access key' },
      { name: 'AWS_REGION', label: 'Region', help: 'Such as eu-central-1.', is_secret: false },
    ],
  },
  {
    id: 'azure-mcp',
    name: 'Microsoft Azure',
    description: 'Resources, storage, databases and logs of Azure',
    category: 'cloud',
    icon: '🔷',
    tags: ['cloud', 'microsoft'],
    transport: {
      type: 'stdio',
      command: 'azmcp',
      args: ['server', 'start'],
      hosts: ['login.microsoftonline.com', '*.azure.com', '*.azure.net', '*.windows.net'],
      package: { runner: 'npx', name: '@azure/mcp', version: '2.0.5' },
    },
    required_env: [
      { name: 'AZURE_SUBSCRIPTION_ID', label: 'Subscription id', is_secret: false },
      { name: 'AZURE_TENANT_ID', label: 'Tenant id', is_secret: false },
      { name: 'AZURE_CLIENT_ID', label: 'Application id', is_secret: false, get_url: 'https://entra.microsoft.com/' },
      { name: 'AZURE_CLIENT_SECRET', label: 'Client secret' },
    ],
    setup_instructions: 'Register an application in Microsoft Entra, give it a role and make a secret for it.',
  },
  {
    id: 'gcp-mcp',
    name: 'Google Cloud',
    description: 'Runs commands of gcloud',
    category: 'cloud',
    icon: '🌩️',
    tags: ['cloud', 'google'],
    transport: {
      type: 'stdio',
      command: 'gcloud-mcp',
      env: { CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE: '{GOOGLE_APPLICATION_CREDENTIALS}' },
      hosts: ['*.googleapis.com'],
      package: { runner: 'npx', name: '@google-cloud/gcloud-mcp', version: '0.5.3' },
    },
    required_env: [
      {
        name: 'GOOGLE_APPLICATION_CREDENTIALS',
        label: 'Path of the key file of a service account',
        help: 'Its folder must be in plugins.integrations.read.',
        is_secret: false,
        get_url: 'https://console.cloud.google.com/iam-admin/serviceaccounts',
        path: 'read',
      },
    ],
    setup_instructions: 'Install gcloud first.',
  },
]
