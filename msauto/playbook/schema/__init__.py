"""The keys of playbooks, inventories and settings as pydantic models, and their JSON Schemas."""
