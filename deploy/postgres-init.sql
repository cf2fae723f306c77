-- The application's login, apart from the owner: row-level security does not bind an owner.
-- The owner's migrations grant it what it needs.
CREATE ROLE colloquy_app LOGIN PASSWORD 'colloquy_app';
